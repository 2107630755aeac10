"""What must be survived, row by row, with the real thing: the verdict is right, the next honest answer passes, nothing stays."""

from __future__ import annotations

import pytest

from attacks.level_attacks import EVERY_ATTACK
from attacks.scenes import Told


def survived(scene: Told, row: int) -> None:
    """Each attack of a row gets the verdict it deserves, reaches nothing, and harms nobody who comes after it."""
    wrong = []
    seen = 0
    for attack, found in scene.of(row):
        seen += 1
        if "failure" in found:
            wrong.append(f"{attack.key}: no verdict, which would be a way out: {found['failure']}")
            continue
        if attack.decides and found["passed"]:
            if found["trust"] != "in-process":
                wrong.append(f"{attack.key}: its own object decided, and the verdict says {found['trust']!r}")
        elif found["passed"] != (not attack.labels) or (attack.labels and found["label"] not in attack.labels):
            wrong.append(f"{attack.key}: passed {found['passed']}, {found['label']!r}: {found['reason']}")
        if attack.tried and "TRIED" not in found["output"]:
            wrong.append(f"{attack.key}: did not come to its end: {found['output'][-300:]}")
        if "ESCAPED" in found["output"] and not scene.weak:
            wrong.append(f"{attack.key}: {found['output'][:1000]}")
        # a test that asks an object of the answer's whether it is true takes its word, and says so
        # so is an exception that ends loops and that the tests name
        trust = "in-process" if attack.case in ("own", "stops") else "isolated"
        # what failed with something in its hands that cannot cross was judged again beside its tests
        judged_again = (not found["passed"] or attack.decides) and found["trust"] == "in-process"
        if found["trust"] != trust and not judged_again:
            wrong.append(f"{attack.key}: trust {found['trust']!r}")
        honest = found["honest"]
        if not honest.get("passed") or honest["output"] != "[]\n":
            wrong.append(f"{attack.key}: the next honest answer: {honest}")
    assert seen, f"no attack of row {row} was tried"
    assert not wrong, "\n".join(wrong)


def test_row_01_wrong_is_wrong_and_right_is_right(scene: Told) -> None:
    survived(scene, 1)


def test_row_02_leaving_is_not_passing(scene: Told) -> None:
    survived(scene, 2)


def test_row_03_a_death_before_the_verdict_is_no_pass(scene: Told) -> None:
    survived(scene, 3)


def test_row_04_an_object_that_equals_everything_equals_nothing(scene: Told) -> None:
    survived(scene, 4)


def test_row_05_there_is_no_frame_and_no_object_to_find(scene: Told) -> None:
    survived(scene, 5)


def test_row_06_what_is_patched_is_not_what_judges(scene: Told) -> None:
    survived(scene, 6)


def test_row_07_a_skipped_test_is_a_failed_test(scene: Told) -> None:
    survived(scene, 7)


def test_row_08_words_and_files_of_success_mean_nothing(scene: Told) -> None:
    survived(scene, 8)


def test_row_09_whatever_is_written_to_any_file_is_at_most_a_return_value(scene: Told) -> None:
    survived(scene, 9)


def test_row_10_nobody_stays_to_answer_the_next(scene: Told) -> None:
    survived(scene, 10)


def test_row_11_processes_and_threads_are_counted(scene: Told) -> None:
    survived(scene, 11)


def test_row_12_daemons_die_with_their_answer(scene: Told) -> None:
    # one that is waited for makes its answer run out of time
    survived(scene, 12)


def test_row_13_the_stopped_and_the_undead_are_buried(scene: Told) -> None:
    survived(scene, 13)


def test_row_14_who_ignores_every_signal_is_killed(scene: Told) -> None:
    survived(scene, 14)


def test_row_15_waiting_and_working_have_limits_of_their_own(scene: Told) -> None:
    survived(scene, 15)


def test_row_16_output_is_capped_and_blocks_nobody(scene: Told) -> None:
    survived(scene, 16)
    assert all(len(found.get("output", "")) <= 64 << 10 for _, found in scene.of(16))


def test_row_17_memory_is_limited_however_it_is_taken(scene: Told) -> None:
    survived(scene, 17)


def test_row_18_files_are_limited_and_wiped(scene: Told) -> None:
    survived(scene, 18)


def test_row_19_nothing_is_written_outside(scene: Told) -> None:
    survived(scene, 19)


def test_row_20_nothing_is_read_outside(scene: Told) -> None:
    survived(scene, 20)


def test_row_21_there_is_no_network(scene: Told) -> None:
    survived(scene, 21)


def test_row_22_other_processes_are_out_of_reach(scene: Told) -> None:
    survived(scene, 22)


def test_row_23_the_kernel_offers_no_way_out(scene: Told) -> None:
    survived(scene, 23)


def test_row_24_whatever_is_returned_the_referee_lives(scene: Told) -> None:
    survived(scene, 24)


def test_row_25_whatever_is_raised_the_referee_lives(scene: Told) -> None:
    survived(scene, 25)


def test_row_26_lazy_and_changed_things_behave_as_defined(scene: Told) -> None:
    survived(scene, 26)


def test_row_27_the_world_looks_the_same_every_time(scene: Told) -> None:
    survived(scene, 27)
    seen = [found["output"] for attack, found in scene.of(27) if not attack.labels]
    assert all(each.startswith("SEEN") and "'UTC'" in each and "C.UTF-8" in each for each in seen)
    assert len(set(seen)) <= 1


def test_row_30_crashes_are_deaths(scene: Told) -> None:
    survived(scene, 30)


def test_row_36_what_is_done_to_a_descriptor_ends_with_the_attempt(scene: Told) -> None:
    survived(scene, 36)


def test_row_41_nothing_about_a_file_outside_is_changed(scene: Told) -> None:
    survived(scene, 41)


def test_row_42_quotas_count_what_is_hidden(scene: Told) -> None:
    survived(scene, 42)
    labels = {found["label"] for attack, found in scene.of(42) if "sockets" in attack.name}
    assert scene.weak or labels <= {"memory limit"}


def test_row_46_calls_that_are_not_listed_do_not_exist(scene: Told) -> None:
    survived(scene, 46)


def test_nothing_is_left_behind(scene: Told) -> None:
    told = scene.told
    assert told["processes"] == []
    assert told["folders"] == {}, "a worker's folder is empty after each answer"
    assert told["children"] == ["sleep\x00600\x00"], "only the process that wanted to live"
    assert told["files"] < 20, "open files do not add up"
    if not scene.weak:
        assert told["changed"] == {}
        assert told["after"] == []


def test_the_attacks_get_out_where_the_sandbox_is_weak_and_nowhere_else(scene: Told) -> None:
    """An attack that has never succeeded has proved nothing: where only the verdict is protected, these get out."""
    for row in (19, 20):
        assert any("ESCAPED" in found["output"] for _, found in scene.of(row)) == scene.weak


@pytest.mark.slow
def test_every_attack_is_survived_at_every_level_as_every_user(whole_scene: Told) -> None:
    for row in sorted({attack.row for attack in EVERY_ATTACK}):
        survived(whole_scene, row)
    test_nothing_is_left_behind(whole_scene)


def test_every_row_has_its_attacks() -> None:
    # the others need the whole engine, other languages, or a machine of their own
    assert {attack.row for attack in EVERY_ATTACK} == {*range(1, 31), 36, 41, 42, 46} - {28, 29}
    assert len({attack.key for attack in EVERY_ATTACK}) > 300
