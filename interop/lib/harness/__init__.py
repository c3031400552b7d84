"""Shared code of the client suites: catalog servers, clients, and checks of the resulting data.

`server`, `cluster`, `proxy`, `s3`, `files` and `paths` import only the standard library at the top level.
They import other packages where they use them. So the compatibility kit's runner can use them without the
clients' virtual environment.
"""
