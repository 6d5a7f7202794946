"""Operands of a failed operator beside each other, as a user sees them."""

from __future__ import annotations

import numpy as np

from engine.statistics import statistics
from kuiper_studio.tensor_view.operand_gallery import OperandCard, OperandGallery


def painted(picture, color):
    """Columns and rows of a picture that have a colour."""
    image = picture.grab().toImage()
    found = [
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y) == color
    ]
    return [len({place[axis] for place in found}) for axis in (0, 1)]


def test_pictures_of_one_shape_are_of_one_size(shown, theme):
    cards = []
    for place, name in enumerate(["short", "a_name_that_takes_more_room"]):
        value = np.full((1, 1, 8, 8), 0.5, np.float32)
        cards.append(OperandCard(place, name, "", value, statistics(value)))
    gallery = OperandGallery(theme)
    gallery.show_cards(cards)
    shown(gallery, 823, 309)  # an odd width: one picture has a pixel more room
    pictures = [
        gallery.findChild(object, f"operandPicture{place}") for place in range(len(cards))
    ]
    color = pictures[0].grab().toImage().pixelColor(4, 4)
    sizes = [painted(picture, color) for picture in pictures]
    assert sizes[0] == sizes[1]
    assert sizes[0][0] == sizes[0][1] > 100
