"""Windows that open over the main one: palette, export, shortcuts, about.

Each is imported when it is first opened, so that the main window appears sooner.
"""
