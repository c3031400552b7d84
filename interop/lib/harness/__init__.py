"""What client suites have in common: catalog servers, clients, and checks of what they leave.

`server`, `cluster`, `proxy`, `s3`, `files` and `paths` are of the standard library only, but for what they import where
they use it: the compatibility kit's runner takes them without the clients' virtual environment.
"""
