"""The floor contract as a check: is this message what the published AsyncAPI document promises?"""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from controller import asyncapi, wire

DOCUMENT = asyncapi.document("test")


def validate(suffix: str, payload: bytes) -> Any:
    """The decoded payload of an address below the base; fails the test when the document does not allow it."""
    row = wire.topic(suffix)
    body = json.loads(payload.decode())
    errors = [f"{error.json_path}: {error.message}" for error in _validator(row.message.__name__).iter_errors(body)]
    assert not errors, f"{suffix} breaks the contract: {errors} in {body}"
    return body


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
