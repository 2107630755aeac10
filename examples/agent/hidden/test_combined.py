"""Not shown to the agent: several units in one text."""

import unittest

from durations import parse


class Combined(unittest.TestCase):
    def test_two_units(self):
        self.assertEqual(parse("1h 30m"), 5400)

    def test_three_units(self):
        self.assertEqual(parse("1h 1m 1s"), 3661)

    def test_one_unit_twice(self):
        self.assertEqual(parse("20m 20m"), 2400)
