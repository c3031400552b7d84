package fakecloud

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// The credentials of clients; scripts/s3server.py has the same values. The server refuses all other
// credentials.
const (
	S3Region          = "us-east-1"
	S3AccessKeyID     = "moorage-test"
	S3SecretAccessKey = "moorage-test-secret"
)

// S3Server is a running server. It is safe for concurrent use.
type S3Server struct {
	// Endpoint is the server's URL.
	Endpoint string

	client  *s3.Client
	buckets atomic.Int64
	process *Process
}

// The servers of this process.
var (
	shared      = sync.OnceValues(func() (*S3Server, error) { return startS3("s3server.py") })
	sharedMinIO = sync.OnceValues(func() (*S3Server, error) { return startS3("minioserver.py") })
)

// S3RoleARN is the role that both servers assume. MinIO accepts any role.
const S3RoleARN = "arn:aws:iam::000000000000:role/moorage"

// StartS3 returns the server of this process. It starts the server if no test has done so. The
// server ends with the process, even if the process crashes.
func StartS3(tb testing.TB) *S3Server {
	tb.Helper()
	return startedS3(tb, shared)
}

// StartMinIO is like StartS3, but starts MinIO, which interop/setup.sh minio builds.
func StartMinIO(tb testing.TB) *S3Server {
	tb.Helper()
	return startedS3(tb, sharedMinIO)
}

func startedS3(tb testing.TB, start func() (*S3Server, error)) *S3Server {
	tb.Helper()
	server, err := start()
	if err != nil {
		tb.Fatalf("fakecloud: s3: %v", err)
	}
	return server
}

// NewBucket creates an empty bucket for the calling test alone, and returns its name.
func (s *S3Server) NewBucket(tb testing.TB) string {
	tb.Helper()
	name, err := s.MakeBucket(tb.Context())
	if err != nil {
		tb.Fatalf("fakecloud: s3: %v", err)
	}
	return name
}

// MakeBucket is like NewBucket, but returns an error. It is for goroutines that must not end the
// test.
func (s *S3Server) MakeBucket(ctx context.Context) (name string, err error) {
	name = fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if _, err := s.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return "", fmt.Errorf("make a bucket: %w", err)
	}
	return name, nil
}

// Keys returns the keys of all objects in a bucket, in byte order.
func (s *S3Server) Keys(tb testing.TB, bucket string) []string {
	tb.Helper()
	keys, err := s.ListKeys(tb.Context(), bucket)
	if err != nil {
		tb.Fatalf("fakecloud: s3: %v", err)
	}
	return keys
}

// ListKeys is like Keys, but returns an error. It is for goroutines that must not end the test.
func (s *S3Server) ListKeys(ctx context.Context, bucket string) (keys []string, err error) {
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

// startS3 runs a script in the folder scripts.
func startS3(script string) (*S3Server, error) {
	process, err := StartProcess(script)
	if err != nil {
		return nil, err
	}
	return &S3Server{Endpoint: process.URL, client: newS3Client(process.URL), process: process}, nil
}

func newS3Client(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		Region:       S3Region,
		BaseEndpoint: aws.String(endpoint),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(S3AccessKeyID, S3SecretAccessKey, ""),
	})
}
