"""What connections buffer, and which are closed when it is too much."""

from petstore.http.buffers import BufferBudget


class Client:
    """Notes when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def abort(self) -> None:
        self.is_closed = True


def closed(clients: list[Client]) -> list[int]:
    return [number for number, client in enumerate(clients) if client.is_closed]


def test_nobody_is_closed_within_the_budget() -> None:
    budget, clients = BufferBudget(100), [Client(), Client()]
    for client in clients:
        budget.note(client, 50)
    assert closed(clients) == []


def test_beyond_the_budget_the_longest_silent_is_closed() -> None:
    budget, clients = BufferBudget(100), [Client() for _ in range(4)]
    for client in clients[:3]:
        budget.note(client, 30)
    budget.note(clients[0], 31)
    budget.note(clients[3], 60)
    assert closed(clients) == [1, 2]


def test_what_was_let_go_of_counts_no_more() -> None:
    budget, clients = BufferBudget(100), [Client(), Client(), Client()]
    budget.note(clients[0], 90)
    budget.note(clients[0], 0)
    budget.note(clients[1], 90)
    budget.note(clients[2], 10)
    assert closed(clients) == []


def test_one_that_buffers_more_than_the_whole_budget_is_closed_itself() -> None:
    budget, clients = BufferBudget(100), [Client()]
    budget.note(clients[0], 101)
    budget.note(clients[0], 0)
    assert closed(clients) == [0]
