"""The proof: experiments that try what the service promises, on real parts that fail.

``make prove`` runs them; ``docs/reliability.md`` is their report.
"""
