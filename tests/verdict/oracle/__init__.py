"""A second opinion on verdicts: concrete requests against concrete buckets, by the S3 User Guide's three contexts.

It shares no code with auditor/verdict. `conditions` decides one condition for one request, and `statements` one
statement. `names`, `identities` and `places` list the requesters, with the values of `candidates`. `worlds` completes
facts that are not known, `service` allows or refuses one request, and `verdict` derives verdict and audience from the
answers. `generator` makes random cases of the conditions in `topics`, `large` makes large policies, and `laws` has
what holds for verdicts without an oracle; `recipe` shrinks and prints a case.
"""
