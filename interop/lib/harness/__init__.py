"""Starts catalog servers for client suites, stops them, and looks at what they leave.

Standard library only: the compatibility kit's runner uses it without the
clients' virtual environment.
"""
