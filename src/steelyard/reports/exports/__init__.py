"""Reports that other programs read: rows for spreadsheets, and the files of other evaluation tools.

Input: the results of a run, texts included. Output: one text per format, as its tool writes it.
Nothing is added that the run does not hold: a field that a tool has and we do not know is left empty.
"""
