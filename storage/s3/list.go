package s3

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
)

// listMax is how many objects a server lists in one answer.
const listMax = 1000

// List implements storage.Lister with one request. It leaves out objects whose keys end with a
// slash, which represent folders.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	under, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	prefix, bucket := strings.TrimSuffix(under.key, "/")+"/", "s3://"+under.bucket+"/"
	input := &s3.ListObjectsV2Input{
		Bucket: &under.bucket, Prefix: &prefix, MaxKeys: aws.Int32(int32(min(limit, listMax))),
		EncodingType: types.EncodingTypeUrl,
	}
	if after != "" {
		input.ContinuationToken = &after
	}
	answer, err := s.client.sdk.ListObjectsV2(ctx, input)
	if err != nil {
		return storage.Page{}, translate(under, err)
	}
	now, ok := awsmiddleware.GetServerTime(answer.ResultMetadata)
	if !ok {
		return storage.Page{}, fmt.Errorf("list %s: the server does not say what time it is", folder)
	}
	page := storage.Page{Now: now}
	for _, found := range answer.Contents {
		key := aws.ToString(found.Key)
		if answer.EncodingType == types.EncodingTypeUrl {
			if key, err = url.QueryUnescape(key); err != nil {
				return storage.Page{}, fmt.Errorf("list %s: %w", folder, err)
			}
		}
		location := bucket + key
		parsed, err := storage.ParseFile(location)
		if err != nil || parsed.String() != location || !strings.HasPrefix(key, prefix) {
			continue
		}
		page.Files = append(page.Files, storage.Listed{Location: location, Info: storage.Info{
			Bytes: aws.ToInt64(found.Size), Modified: aws.ToTime(found.LastModified),
		}})
	}
	if aws.ToBool(answer.IsTruncated) {
		page.Next = aws.ToString(answer.NextContinuationToken)
		if page.Next == "" || page.Next == after {
			return storage.Page{}, fmt.Errorf("list %s: the server has more, and does not say how to go on", folder)
		}
	}
	return page, nil
}

var _ storage.Lister = (*Store)(nil)
