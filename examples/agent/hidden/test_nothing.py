"""Not shown to the agent: no time at all."""

import unittest

from durations import show


class Nothing(unittest.TestCase):
    def test_no_time_is_shown_as_seconds(self):
        self.assertEqual(show(0), "0s")

    def test_no_part_is_shown_without_need(self):
        self.assertEqual(show(3600), "1h")
