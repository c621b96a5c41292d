"""Names of the agents that play the settings of an agent's tuning: `NAME-setting-07`."""

from __future__ import annotations

#: Before the number.
_MARK = "-setting-"


def setting_name(agent: str, place: int) -> str:
    """The agent that plays a setting of `agent`."""
    return f"{agent}{_MARK}{place:02d}"


def setting_of(name: str) -> tuple[str, int] | None:
    """The agent that a setting is of and the setting's number; None if `name` is no setting's."""
    agent, _, place = name.rpartition(_MARK)
    return (agent, int(place)) if agent and place.isdecimal() else None
