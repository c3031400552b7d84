package s3

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
	"moorage/storage/cloud"
)

// listMax is the maximum number of objects in one listing of the server.
const listMax = 1000

// List implements storage.Lister with one request. It leaves out objects whose keys end with a
// slash, which represent folders.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	under, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	listing := cloud.Listing{
		Folder: folder, After: after, Prefix: cloud.Below(under.key),
		Bucket: storage.Location{Scheme: storage.SchemeS3, Authority: under.bucket},
	}
	input := &s3.ListObjectsV2Input{
		Bucket: &under.bucket, Prefix: &listing.Prefix, MaxKeys: aws.Int32(int32(min(limit, listMax))),
		EncodingType: types.EncodingTypeUrl,
	}
	if after != "" {
		input.ContinuationToken = &after
	}
	answer, err := s.client.sdk.ListObjectsV2(ctx, input)
	if err != nil {
		return storage.Page{}, translate(under, err)
	}
	now, _ := awsmiddleware.GetServerTime(answer.ResultMetadata)
	page, err := listing.Page(now, aws.ToBool(answer.IsTruncated), aws.ToString(answer.NextContinuationToken))
	if err != nil {
		return storage.Page{}, err
	}
	for _, found := range answer.Contents {
		key := aws.ToString(found.Key)
		if answer.EncodingType == types.EncodingTypeUrl {
			if key, err = url.QueryUnescape(key); err != nil {
				return storage.Page{}, fmt.Errorf("list %s: %w", folder, err)
			}
		}
		listing.Add(&page, key, storage.Info{
			Bytes: aws.ToInt64(found.Size), Modified: aws.ToTime(found.LastModified),
		})
	}
	return page, nil
}

var _ storage.Lister = (*Store)(nil)
