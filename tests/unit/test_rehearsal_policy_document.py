"""The look-up that writes IAM policy documents."""

import json

from rehearsal.policy_document import policy_document


def test_statements_become_the_words_of_iam() -> None:
    answer = policy_document(
        {
            "statements": [
                {
                    "actions": ["s3:GetObject"],
                    "resources": ["arn:aws:s3:::data/*"],
                    "principals": [{"type": "AWS", "identifiers": ["123456789012"]}],
                    "conditions": [
                        {"test": "Bool", "variable": "aws:SecureTransport", "values": ["true"]}
                    ],
                }
            ]
        }
    )
    assert json.loads(str(answer["json"])) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": ["arn:aws:s3:::data/*"],
                "Principal": {"AWS": ["123456789012"]},
                "Condition": {"Bool": {"aws:SecureTransport": ["true"]}},
            }
        ],
    }


def test_anybody_is_a_star() -> None:
    answer = policy_document(
        {"statements": [{"principals": [{"type": "*", "identifiers": ["*"]}]}]}
    )
    assert json.loads(str(answer["json"]))["Statement"][0]["Principal"] == "*"
