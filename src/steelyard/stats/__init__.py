"""Statistics: pass@k, intervals, paired tests, power, agreement and cost.

Plain numbers come in, with an explicit seed where chance is needed; plain numbers go out, None where there is no answer.
Each function cites its source and shows a worked value.
"""
