// Package fakecloud starts the servers that replace the storage of a cloud in tests: real servers
// with its protocol, and doubles. Each listens on 127.0.0.1, once for each test binary that needs
// it. A test that needs a server fails without it. These commands install the servers, below
// .cache:
//
//	interop/setup.sh s3
//	interop/setup.sh gcs
//	interop/setup.sh azurite
//
// StartS3, StartGoogle and StartAzure return servers that require at most a fixed key. A
// GoogleCloud adds the services that make and downscope tokens, and a gate that enforces the
// tokens. A Lake is an account of Azure with a hierarchical namespace. A Proxy in front of any of
// them injects faults. A Far in front of one makes requests take longer.
//
// It must not know what is tested.
package fakecloud
