"""Helpers for tests of memory."""

SLACK = 4e6  # what the allocator and the interpreter take besides

# The plan says what these take: `call` returns its forecast.
PLANNED = {
    "long chain": """
        def asked(model):
            return lambda limit: tt.solve(model, memory_limit=limit).certificate.peak_bytes
        small, call = asked(chain(5, 3)), asked(chain(60_000, 3))
    """,
    "star": """
        def asked(leaves):
            parents = np.zeros(leaves + 1, dtype=int)
            parents[0] = -1
            rng = np.random.default_rng(0)
            model = tt.Model.tree(parents, rng.normal(size=(leaves + 1, 3)), rng.normal(size=(3, 3)))
            return lambda limit: tt.solve(model, memory_limit=limit).certificate.peak_bytes
        small, call = asked(5), asked(20_000)
    """,
    "capped count": """
        def asked(length):
            model = chain(length, 10)
            few = tt.count(model, state=1) <= 3
            return lambda limit: tt.solve(model, where=few, memory_limit=limit).certificate.peak_bytes
        small, call = asked(5), asked(20_000)
    """,
    "many states": """
        def asked(model):
            return lambda limit: tt.solve(model, threads=1, memory_limit=limit).certificate.peak_bytes
        small, call = asked(chain(5, 3)), asked(chain(20, 1100))
    """,
}
