package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
	"moorage/storage/cloud"
)

// ProbeVending issues credentials for a folder below each root. It tries them in the folder, and in
// siblings that a server may confuse with the folder. With the store's own key, it writes a few
// small objects and deletes them.
func (s *Store) ProbeVending(ctx context.Context) error {
	keys, names := s.roots.Shortest()
	for _, name := range names {
		folder, err := s.client.probeFolder(keys[name])
		if err == nil {
			err = s.newVendProbe(name, folder).Run(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// probeFolder returns the key of a new folder below a root, without a slash at the end.
func (c *Client) probeFolder(root string) (string, error) {
	id, err := cloud.NewWriteID(c.random)
	return cloud.Below(root) + cloud.ProbePrefix + id, err
}

// The metadata files that a probe tries to write. probeElsewhere is in a table that sets
// write.metadata.path.
const (
	probeMetadata  = "/metadata/0" + storage.MetadataEnding
	probeElsewhere = "/own/folder/0" + storage.MetadataEnding
)

// vendProbe is the probe of one bucket.
type vendProbe struct {
	cloud.VendingProbe
	store  *Store
	bucket string
}

func (s *Store) newVendProbe(bucket, folder string) *vendProbe {
	p := &vendProbe{store: s, bucket: bucket}
	p.VendingProbe = cloud.VendingProbe{
		Folder: folder, Storage: "s3", Place: "the bucket " + bucket,
		Maker: cmp.Or(s.client.vending.Endpoint, "Amazon's STS"),
		Own:   engine{s.client.sdk, bucket}, Vend: p.vend, Forbidden: p.forbidden, Detours: p.detoured,
		IsRefused: isDenied, Left: []string{folder + probeMetadata, folder + probeElsewhere},
		Delete: func(ctx context.Context, keys []string) error {
			return errors.Join(s.client.deleteObjects(ctx, bucket, identifiers(keys))...)
		},
	}
	return p
}

// vend returns an engine with credentials for the folder.
func (p *vendProbe) vend(ctx context.Context, write bool) (cloud.Engine, error) {
	location := storage.Location{Scheme: storage.SchemeS3, Authority: p.bucket, Path: "/" + p.Folder}
	made, err := p.store.Vend(ctx, storage.Scope{
		Locations: []string{location.String()}, Write: write, Session: "probe", Duration: vendDurationMin,
	})
	if err != nil {
		return nil, err
	}
	options := p.store.client.sdk.Options().Copy()
	options.Credentials = credentials.NewStaticCredentialsProvider(made.Config[configAccessKeyID],
		made.Config[configSecretAccessKey], made.Config[configSessionToken])
	return engine{s3.New(options), p.bucket}, nil
}

// forbidden returns further requests that must be refused. They are specific to S3.
func (p *vendProbe) forbidden(engine cloud.Engine, write bool) []cloud.Trial {
	trials := []cloud.Trial{{What: "list names that begin with their folder's name", Do: engine.List, Name: p.Folder}}
	if write && !p.store.client.vending.OpenMetadata {
		trials = append(trials,
			cloud.Trial{What: "write a metadata file", Do: engine.Write, Name: p.Folder + probeMetadata},
			cloud.Trial{
				What: "write a metadata file elsewhere in its folder", Do: engine.Write,
				Name: p.Folder + probeElsewhere,
			})
	}
	return trials
}

// detoured returns ErrUnenforced if the credentials reach beyond their scope through a name that
// the server cleans after it has checked the policy.
func (p *vendProbe) detoured(ctx context.Context, engine cloud.Engine, write bool) error {
	siblings, _ := p.Siblings()
	folder := p.Folder[:strings.LastIndexByte(p.Folder, '/')+1]
	beside := siblings[0] + cloud.ProbeData
	detours := []struct{ by, to string }{
		{p.Folder + "/../" + strings.TrimPrefix(beside, folder), beside},
		{p.Folder + "/x/../../" + strings.TrimPrefix(beside, folder), beside},
	}
	for _, each := range detours {
		if err := engine.Read(ctx, each.by); err == nil {
			return fmt.Errorf("%w: in %s its credentials can read %s as %s", storage.ErrUnenforced, p.Place, each.to,
				each.by)
		}
	}
	if !write {
		return nil
	}
	if !p.store.client.vending.OpenMetadata {
		metadata := p.Folder + probeMetadata
		for _, by := range []string{"/" + probeMetadata, "/." + probeMetadata, "/x/.." + probeMetadata} {
			detours = append(detours, struct{ by, to string }{p.Folder + by, metadata})
		}
		if err := p.Own.Write(ctx, metadata); err != nil {
			return fmt.Errorf("write %s with the server's own credentials: %w", metadata, err)
		}
	}
	for _, each := range detours {
		for _, try := range []cloud.Trial{
			{What: "delete", Do: engine.Delete, Name: each.by}, {What: "write", Do: engine.Write, Name: each.by},
		} {
			before, err := p.version(ctx, each.to)
			if err != nil {
				return err
			}
			_ = try.Do(ctx, try.Name) // the next check shows the effect
			after, err := p.version(ctx, each.to)
			if err != nil && statusOf(err) != http.StatusNotFound {
				return err
			}
			if after != before {
				return fmt.Errorf("%w: in %s its credentials can %s %s as %s", storage.ErrUnenforced, p.Place, try.What,
					each.to, each.by)
			}
		}
	}
	return nil
}

// version returns a value that distinguishes the present content of an object from earlier content.
func (p *vendProbe) version(ctx context.Context, key string) (string, error) {
	found, err := p.store.client.sdk.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &p.bucket, Key: &key})
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", key, err)
	}
	return aws.ToString(found.ETag) + aws.ToTime(found.LastModified).String(), nil
}

// engine sends the requests of engines to a bucket. It implements cloud.Engine.
type engine struct {
	sdk    *s3.Client
	bucket string
}

// Write replaces an object.
func (e engine) Write(ctx context.Context, key string) error {
	_, err := e.sdk.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &e.bucket, Key: &key, Body: strings.NewReader("probe"),
		ContentMD5: aws.String(encodeMD5([]byte("probe"))),
	})
	return err
}

// Read requests an object, but does not read its content.
func (e engine) Read(ctx context.Context, key string) error {
	answer, err := e.sdk.GetObject(ctx, &s3.GetObjectInput{Bucket: &e.bucket, Key: &key})
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// List requests a page.
func (e engine) List(ctx context.Context, prefix string) error {
	_, err := e.sdk.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &e.bucket, Prefix: &prefix})
	return err
}

// Delete sends a bulk delete, which can be refused as a whole or for the object.
func (e engine) Delete(ctx context.Context, key string) error {
	answer, err := e.sdk.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &e.bucket, Delete: &types.Delete{Objects: identifiers([]string{key})},
	})
	if err != nil {
		return err
	}
	for _, failed := range answer.Errors {
		return refusal{aws.ToString(failed.Code)}
	}
	return nil
}

// refusal is the error code with which the server refused to delete an object.
type refusal struct{ code string }

// Error returns the code.
func (r refusal) Error() string { return r.code }

// isDenied reports whether the server refused a request because of its credentials.
func isDenied(err error) bool {
	var one refusal
	if errors.As(err, &one) {
		return one.code == "AccessDenied"
	}
	return statusOf(err) == http.StatusForbidden
}
