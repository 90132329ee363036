"""Where the source says that a value is kept; which keys it reads; which name is only a second one."""
from __future__ import annotations

import textwrap

import pytest

from traindx.probes import source

KEEPERS = {
    "appended": ("""
        losses = []
        for x in data:
            loss = criterion(model(x), y)  # from
            loss.backward()
            losses.append(loss)  # kept
    """, True),
    "appended_as_number": ("""
        for x in data:
            loss = criterion(model(x), y)  # from
            losses.append(loss.item())
            count += 1
    """, True),
    "summed_by_hand_written_loss": ("""
        def main():
            total = 0
            for x in data:
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()  # from
                total += loss  # kept
            print(total)
    """, True),
    "returned_and_kept_by_the_caller": ("""
        def validate():
            total = 0
            for x in data:
                total = total + criterion(model(x), y)  # from
            return total / 3
        for epoch in range(9):
            value = validate()
            log["valid"].append(value)  # kept
    """, True),
    "in_a_dict": ("""
        def step(x):
            loss = criterion(model(x), y)  # from
            return {"loss": loss}
        for x in data:
            outputs.append(step(x))  # kept
    """, True),
    "detached_outputs_count_where_memory_does": ("""
        for x in data:
            out = model(x)  # from
            seen.append(out.detach())  # kept
    """, False),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_the_statement_that_keeps(name, tmp_path):
    text, graph = KEEPERS[name]
    file = tmp_path / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    lines = file.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines, 1) if "# from" in line)
    kept = next((i for i, line in enumerate(lines, 1) if "# kept" in line), None)
    site = source.keeper(str(file), begin, graph)
    assert (site.line if site else None) == kept


BREAKING = {
    "a_function_in_the_call": """
        def features(a):
            return torch.cat([a, torch.log(a)], 1)  # breaks
        loss = mse(net(features(x[rows])), y[rows])  # from
    """,
    "an_assignment_of_the_module": """
        target = counts.log() - 1.5  # breaks
        for rows in batches:
            loss = mse(net(x[rows]), target[rows])  # from
    """,
    "by_two_names_above_a_function": """
        raw = table / totals  # breaks
        x = raw.float()
        def train():
            for rows in batches:
                out = net(x[rows])  # from
    """,
    "a_loss_of_one_s_own_feeds_nothing": """
        def loss_of(out, y):
            return (out / y.norm()).log().mean()
        for x, y in batches:
            total.append(loss_of(net(x), y).item())  # from
    """,
    "what_the_model_gave_is_no_input": """
        scale = torch.log(net(x))
        value = y / 255.0
        out = head(value)  # from
    """,
}


@pytest.mark.parametrize("name", BREAKING)
def test_the_line_that_can_break_what_is_fed(name, tmp_path):
    text = BREAKING[name]
    file = tmp_path / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    lines = file.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines, 1) if "# from" in line)
    breaking = [i for i, line in enumerate(lines, 1) if "# breaks" in line]
    assert [site.line for site in source.breaks_before(str(file), begin)] == breaking


def test_keys_that_are_read(tmp_path):
    file = tmp_path / "keys.py"
    file.write_text('state = load(path)\nstart = state["epoch"] + 1\nbest = state.get("best", 0)\nstate["written"] = 3\n')
    assert source.keys_read(str(file)) == {"epoch", "best"}


def test_a_second_name_needs_the_score_beside_it(tmp_path):
    file = tmp_path / "names.py"
    file.write_text(textwrap.dedent("""
        if score > best:
            best = score
            best_model = model
        if score > limit:
            other = model
        if loss < self.low:
            self.low, self.kept = loss, net
        print(best_model, other, self.kept)
    """))
    assert [(b.name, b.other, b.line) for b in source.best_names(str(file))] == [("best_model", "model", 4), ("self.kept", "net", 8)]
