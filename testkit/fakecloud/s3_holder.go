package fakecloud

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// S3Holder is a client of an S3 server, with credentials from a catalog. It is safe for concurrent
// use.
type S3Holder struct{ client *s3.Client }

// As returns a client with the credentials in the configuration of a loaded table.
func (s *S3Server) As(config map[string]string) S3Holder {
	return S3Holder{s3.New(s3.Options{
		Region: S3Region, BaseEndpoint: aws.String(s.Endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(config["s3.access-key-id"],
			config["s3.secret-access-key"], config["s3.session-token"]),
	})}
}

// parts returns the bucket and the key of a location.
func parts(location string) (bucket, key *string) {
	before, after, _ := strings.Cut(strings.TrimPrefix(location, "s3://"), "/")
	return &before, &after
}

// Write writes an object.
func (h S3Holder) Write(ctx context.Context, location string) error {
	bucket, key := parts(location)
	_, err := h.client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("mine")})
	return err
}

// Read reads an object.
func (h S3Holder) Read(ctx context.Context, location string) error {
	bucket, key := parts(location)
	answer, err := h.client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Delete deletes an object.
func (h S3Holder) Delete(ctx context.Context, location string) error {
	bucket, key := parts(location)
	_, err := h.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key})
	return err
}

// List lists the keys that begin with a location.
func (h S3Holder) List(ctx context.Context, location string) error {
	bucket, key := parts(location)
	_, err := h.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: key})
	return err
}
