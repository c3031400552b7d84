// Package fakecloud starts the servers that replace the storage of a cloud in tests: real servers
// with the cloud's protocol, and simulated ones (doubles). Each test binary that needs a server
// starts it once, on 127.0.0.1. A test that needs a server fails without it. These commands install
// the servers, below .cache:
//
//	interop/setup.sh s3
//	interop/setup.sh gcs
//	interop/setup.sh azurite
//
// StartS3, StartGoogle and StartAzure return servers that require a fixed key or no key. A
// GoogleCloud adds the services that issue and downscope tokens, and a gate that enforces the
// tokens. A Lake is an Azure account with a hierarchical namespace. A Proxy in front of any of
// these servers injects faults. A Far in front of a server makes requests take longer.
//
// The package does not know the code under test.
package fakecloud
