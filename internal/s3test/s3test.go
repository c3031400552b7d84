// Package s3test starts a real S3 server for tests: one process on 127.0.0.1 for each test binary
// that needs it. A test that needs the server fails without it. This command installs it, below
// .cache:
//
//	interop/setup.sh s3
//
// It must not know what is tested.
package s3test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"moorage/internal/cloudtest"
)

// The credentials of clients, the same as in scripts/s3server.py. The server refuses all others.
const (
	Region          = "us-east-1"
	AccessKeyID     = "moorage-test"
	SecretAccessKey = "moorage-test-secret"
)

// Server is a running server. It is safe for concurrent use.
type Server struct {
	// Endpoint is its URL.
	Endpoint string

	client  *s3.Client
	buckets atomic.Int64
	process *cloudtest.Process
}

// The servers of this process.
var (
	shared      = sync.OnceValues(func() (*Server, error) { return start("s3server.py") })
	sharedMinIO = sync.OnceValues(func() (*Server, error) { return start("minioserver.py") })
)

// RoleARN is the role that both servers assume. MinIO accepts any role.
const RoleARN = "arn:aws:iam::000000000000:role/moorage"

// Start returns the server of this process. It starts the server if no test did before. The server
// ends with the process, even if the process crashes.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return started(tb, shared)
}

// StartMinIO is Start for MinIO, which interop/setup.sh minio builds.
func StartMinIO(tb testing.TB) *Server {
	tb.Helper()
	return started(tb, sharedMinIO)
}

func started(tb testing.TB, start func() (*Server, error)) *Server {
	tb.Helper()
	server, err := start()
	if err != nil {
		tb.Fatalf("s3test: %v", err)
	}
	return server
}

// NewBucket creates an empty bucket for the calling test alone, and returns its name.
func (s *Server) NewBucket(tb testing.TB) string {
	tb.Helper()
	name, err := s.MakeBucket(tb.Context())
	if err != nil {
		tb.Fatalf("s3test: %v", err)
	}
	return name
}

// MakeBucket is NewBucket for a goroutine that must not end its test.
func (s *Server) MakeBucket(ctx context.Context) (name string, err error) {
	name = fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if _, err := s.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return "", fmt.Errorf("make a bucket: %w", err)
	}
	return name, nil
}

// Keys returns the keys of all objects in a bucket, in byte order.
func (s *Server) Keys(tb testing.TB, bucket string) []string {
	tb.Helper()
	keys, err := s.ListKeys(tb.Context(), bucket)
	if err != nil {
		tb.Fatalf("s3test: %v", err)
	}
	return keys
}

// ListKeys is Keys for a goroutine that must not end its test.
func (s *Server) ListKeys(ctx context.Context, bucket string) (keys []string, err error) {
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list a bucket: %w", err)
		}
		for _, object := range page.Contents {
			keys = append(keys, aws.ToString(object.Key))
		}
	}
	return keys, nil
}

// start runs a script of the folder scripts.
func start(script string) (*Server, error) {
	process, err := cloudtest.Start(script)
	if err != nil {
		return nil, err
	}
	return &Server{Endpoint: process.URL, client: newClient(process.URL), process: process}, nil
}

func newClient(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		Region:       Region,
		BaseEndpoint: aws.String(endpoint),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(AccessKeyID, SecretAccessKey, ""),
	})
}
