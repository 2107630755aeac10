"""The assistant of a shop as it is: the function that is asked stands for your application."""

ANSWERS = {
    "parcel": "The tracking page shows where it is.",
    "send it back": "Yes, within 30 days.",
    "deliver": "Yes, to every country.",
}


def answer(prompt: str) -> str:
    """The first answer whose words the customer used."""
    return next((text for words, text in ANSWERS.items() if words in prompt), "I cannot help with that.")
