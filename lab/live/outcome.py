"""What an answer is worth: right, open (the right ranks, the true cause as one of two), wrong, or nobody named."""

SURE = 0.8
ORDER = ("unnamed", "right", "open", "wrong")      # the worst last


def answer_of(incident):
    suspects = (incident.get("verdict") or {}).get("suspects") or []
    return [{"type": s["type"], "ranks": s["ranks"], "cause": s["cause"], "score": round(s["score"], 2)} for s in suspects[:3]]


def outcome_of(incident, truth):
    """`truth`: kind, ranks, causes of which each is right. Whoever is accused beside the culprit is accused wrongly."""
    kind, ranks, causes = truth
    suspects = answer_of(incident)
    if not suspects:
        return "unnamed"
    if incident["kind"] != kind or any(set(one["ranks"]) != set(ranks) for one in suspects):
        return "wrong"
    right = [one["cause"] in causes for one in suspects]
    return "right" if all(right) else "open" if any(right) and len(right) == 2 else "wrong"


def accused_for_nothing(incidents, mine):
    """Incidents with suspects that belong to no fault."""
    return [one for one in incidents if one["id"] not in mine and answer_of(one)]


def counts(rows):
    every = [row["outcome"] for row in rows]
    sure = sum(row["outcome"] == "wrong" and (row.get("confidence") or 0) >= SURE for row in rows)
    return {"asked": len(rows), "right": every.count("right"), "open": every.count("open"), "wrong": every.count("wrong"), "sureWrong": sure}


def last_line(rows, falsely):
    n = counts(rows)
    return f"right {n['right']} of {n['asked']}, open {n['open']}, wrong {n['wrong']}, sure and wrong {n['sureWrong']}, accused for nothing {falsely}"
