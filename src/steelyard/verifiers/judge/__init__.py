"""Writes the prompts for judges and reads their answers: models that rate or compare other models' answers.

In come answers, references and a rubric; out come prompts, and ratings or preferences read from replies.
No model is asked here, and what an answer says cannot end the part of the prompt that it is in.
"""
