"""The assistant of a shop after a change that was meant to make it friendlier."""

ANSWERS = {
    "parcel": "Good news, the tracking page shows where it is!",
    "send it back": "Of course you can!",
    "deliver": "Yes, to every country!",
}


def answer(prompt: str) -> str:
    """The first answer whose words the customer used."""
    return next((text for words, text in ANSWERS.items() if words in prompt), "I cannot help with that, sorry!")
