"""The proof: experiments that try what the service promises, on real parts that fail.

``make prove`` runs them; ``proof/report.md`` is their report.
"""
