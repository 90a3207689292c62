"""What the objects of a state were made of at the last commit, and which changes of that are allowed."""

from edt_hvd.observing import Values
from edt_hvd.state import structure
from edt_hvd.state.compatibility import check_coverage, check_kinds, check_optimizer_states, check_unchanged
from edt_hvd.state.state_dicts import is_stateful


class StructureWatch:
    """Follows the structure of a state's objects.

    Args:
        values: of the state, when it is made.
        may_change: newcomers can make the same changes, so that all are allowed.
    """

    def __init__(self, values: Values, may_change: bool) -> None:
        self._may_change = may_change
        self._had_state = {name: is_stateful(value) for name, value in values.items()}
        self._known: dict[str, structure.Parts] | None = None
        self._fingerprint: structure.Fingerprint = []
        self._held: structure.RestorableParts | None = None

    def check(self, values: Values) -> structure.Fingerprint:
        """Check that the objects are made of what they were at first, if they may not change.

        However they have changed, all that is trained has to be among them, and optimizers have to be whole.

        Returns:
            What `note` takes.

        Raises:
            StateError: a worker that joins would have other objects, or optimizers and models do not match.
        """
        found = structure.fingerprint(values)
        if found == self._fingerprint:
            return found
        if not self._may_change:
            check_kinds(values, self._had_state)
            if self._known is not None:
                check_unchanged(self._known, structure.structure_of(values))
        check_optimizer_states(values)
        check_coverage(values)
        return found

    def note(self, values: Values, found: structure.Fingerprint) -> bool:
        """Note what the objects are made of now; whether it is other than before."""
        if found == self._fingerprint:
            return False
        if self._known is None or self._may_change:
            self._known = structure.structure_of(values)
        self._fingerprint, self._held = found, structure.RestorableParts(values)
        return True

    def put_back(self, values: Values) -> None:
        """Have the objects consist of the parts that they were made of when that was noted last."""
        if self._held is not None and structure.fingerprint(values) != self._fingerprint:
            self._held.put_back()
