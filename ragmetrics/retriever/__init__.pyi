from .asking import (
    Ask as Ask,
    ask_retriever as ask_retriever,
    look_up as look_up,
    open_retriever as open_retriever,
)
from .questions import (
    NoAnswer as NoAnswer,
    Question as Question,
    QuestionSet as QuestionSet,
    digest_of as digest_of,
    golden_questions as golden_questions,
    key_of as key_of,
    line_of as line_of,
    question_of as question_of,
    read_answer as read_answer,
)
from .retriever_client import (
    RetrieverClient as RetrieverClient,
    together as together,
)
