"""What was expected of a value, in words for users: pydantic's own are for programmers."""

from collections.abc import Mapping
from typing import Any

_SAID: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "nothing is called so",
    "int_parsing": "expected a whole number",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
    "string_type": "expected text",
    "string_unicode": "expected text in UTF-8",
    "string_too_long": "expected at most {max_length} characters",
    "string_too_short": "expected at least {min_length} characters",
    "string_pattern_mismatch": "not possible here",
    "path_type": "expected a path",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected {ge} or more",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected {le} or less",
    "too_short": "has {actual_length} items, and needs {min_length}",
    "too_long": "has {actual_length} items, and may have {max_length}",
    "json_invalid": "is no JSON: {error}",
}


def expected(error: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says was expected; in its own words if it is of another kind."""
    if (said := _SAID.get(error["type"])) is not None:
        return said.format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "expected")
