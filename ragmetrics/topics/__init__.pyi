from .fallen_questions import (
    FallenQuestions as FallenQuestions,
    find_fallen_questions as find_fallen_questions,
)
from .fitting import (
    fit_topics as fit_topics,
    mean_weights as mean_weights,
    telling_words as telling_words,
    word_counts as word_counts,
)
from .question_texts import (
    PastQuestion as PastQuestion,
    questions_with_reference as questions_with_reference,
    read_questions as read_questions,
)
from .store import topics_of_night as topics_of_night
