"""What durations can do so far."""

import unittest

from durations import parse, show


class Durations(unittest.TestCase):
    def test_parse_one_unit(self):
        self.assertEqual(parse("90m"), 5400)
        self.assertEqual(parse("45s"), 45)

    def test_show(self):
        self.assertEqual(show(5400), "1h 30m")

    def test_parse_days(self):
        """Nobody has got round to days yet."""
        self.assertEqual(parse("2d"), 172800)
