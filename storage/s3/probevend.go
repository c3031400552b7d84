package s3

import (
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
)

// ProbeVending issues credentials for a folder below each root and tries them there, and in
// siblings that a server may confuse with it. One sibling has a similar name, and one differs in
// upper and lower case. It writes a few small objects and deletes them, which the store's own key
// must be able to do.
func (s *Store) ProbeVending(ctx context.Context) error {
	keys, names := s.rootKeys()
	for _, name := range names {
		probe, err := s.newVendProbe(name, keys[name])
		if err == nil {
			err = probe.run(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// vendProbe is the probe of one bucket.
type vendProbe struct {
	store  *Store
	bucket string
	inside string    // key of the folder, without a slash at the end
	beside []sibling // folders outside the credentials' scope
}

// sibling is a folder that a server may confuse with another.
type sibling struct{ what, key string }

func (s *Store) newVendProbe(bucket, root string) (*vendProbe, error) {
	id, err := s.client.newWriteID()
	if err != nil {
		return nil, err
	}
	above := strings.TrimPrefix(strings.TrimSuffix(root, "/")+"/", "/")
	name := probePrefix + id
	return &vendProbe{store: s, bucket: bucket, inside: above + name, beside: []sibling{
		{"a folder whose name begins like that of theirs", above + name + "y"},
		{"a folder whose name differs from that of theirs in upper and lower case", above + strings.ToUpper(name)},
	}}, nil
}

// objects of a probe.
const (
	probeData     = "/data"
	probeMetadata = "/metadata/0" + storage.MetadataEnding
	// probeElsewhere is a metadata file of a table that sets write.metadata.path.
	probeElsewhere = "/own/folder/0" + storage.MetadataEnding
)

// run performs the probe, and deletes the objects that it may have written.
func (p *vendProbe) run(ctx context.Context) (err error) {
	own := p.store.client.sdk
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeEndTimeout)
		defer cancel()
		var left []types.ObjectIdentifier
		for _, key := range []string{p.inside + probeData, p.inside + probeMetadata, p.inside + probeElsewhere} {
			left = append(left, types.ObjectIdentifier{Key: aws.String(key)})
		}
		for _, other := range p.beside {
			left = append(left, types.ObjectIdentifier{Key: aws.String(other.key + probeData)})
		}
		if failures := p.store.client.deleteObjects(ctx, p.bucket, left); len(failures) > 0 {
			err = errors.Join(err, fmt.Errorf("delete what the probe wrote: %w", errors.Join(failures...)))
		}
	}()
	for _, other := range p.beside {
		if err := p.writes(own, other.key+probeData)(ctx); err != nil {
			return fmt.Errorf("write %s with the server's own key: %w", other.key+probeData, err)
		}
	}
	for _, write := range []bool{true, false} {
		engine, err := p.vend(ctx, write)
		if err != nil {
			return err
		}
		if err := p.allowed(ctx, engine, write); err != nil {
			return err
		}
		if err := p.refused(ctx, engine, write); err != nil {
			return err
		}
	}
	return nil
}

// vend returns a client with credentials for the folder inside.
func (p *vendProbe) vend(ctx context.Context, write bool) (*s3.Client, error) {
	location := storage.Location{Scheme: storage.SchemeS3, Authority: p.bucket, Path: "/" + p.inside}
	made, err := p.store.Vend(ctx, storage.Scope{
		Locations: []string{location.String()}, Write: write, Session: "probe", Duration: vendDurationMin,
	})
	if err != nil {
		return nil, err
	}
	options := p.store.client.sdk.Options().Copy()
	options.Credentials = credentials.NewStaticCredentialsProvider(made.Config[configAccessKeyID],
		made.Config[configSecretAccessKey], made.Config[configSessionToken])
	return s3.New(options), nil
}

// trial is a request that must be allowed, or must be refused.
type trial struct {
	what string
	do   func(context.Context) error
}

// allowed returns an error if the credentials do not reach their scope.
func (p *vendProbe) allowed(ctx context.Context, engine *s3.Client, write bool) error {
	var trials []trial
	if write {
		trials = append(trials, trial{"write in", p.writes(engine, p.inside+probeData)})
	}
	trials = append(trials, trial{"read in", p.reads(engine, p.inside+probeData)},
		trial{"list", p.lists(engine, p.inside+"/")})
	for _, each := range trials {
		if err := each.do(ctx); err != nil {
			return fmt.Errorf("s3: the credentials that %s makes cannot %s the folder they are for: %w", p.maker(),
				each.what, err)
		}
	}
	return nil
}

// refused returns ErrUnenforced if the credentials reach beyond their scope.
func (p *vendProbe) refused(ctx context.Context, engine *s3.Client, write bool) error {
	for _, each := range p.forbidden(engine, write) {
		err := each.do(ctx)
		if err == nil {
			return fmt.Errorf("%w: in the bucket %s its credentials can %s", storage.ErrUnenforced, p.bucket, each.what)
		}
		if !isDenied(err) {
			return fmt.Errorf("s3: find out whether credentials can %s: %w", each.what, err)
		}
	}
	return p.detoured(ctx, engine, write)
}

// detoured returns ErrUnenforced if the credentials reach beyond their scope by a name that the
// server cleans after it has checked the policy.
func (p *vendProbe) detoured(ctx context.Context, engine *s3.Client, write bool) error {
	own := p.store.client.sdk
	folder := p.inside[:strings.LastIndexByte(p.inside, '/')+1]
	beside := p.beside[0].key + probeData
	detours := []struct{ by, to string }{
		{p.inside + "/../" + strings.TrimPrefix(beside, folder), beside},
		{p.inside + "/x/../../" + strings.TrimPrefix(beside, folder), beside},
	}
	for _, each := range detours {
		if err := p.reads(engine, each.by)(ctx); err == nil {
			return fmt.Errorf("%w: in the bucket %s its credentials can read %s as %s", storage.ErrUnenforced,
				p.bucket, each.to, each.by)
		}
	}
	if !write {
		return nil
	}
	if !p.store.client.vending.OpenMetadata {
		metadata := p.inside + probeMetadata
		for _, by := range []string{"/" + probeMetadata, "/." + probeMetadata, "/x/.." + probeMetadata} {
			detours = append(detours, struct{ by, to string }{p.inside + by, metadata})
		}
		if err := p.writes(own, metadata)(ctx); err != nil {
			return fmt.Errorf("write %s with the server's own key: %w", metadata, err)
		}
	}
	for _, each := range detours {
		for _, try := range []trial{{"delete", p.deletes(engine, each.by)}, {"write", p.writes(engine, each.by)}} {
			before, err := p.version(ctx, each.to)
			if err != nil {
				return err
			}
			_ = try.do(ctx) // the next look shows its effect
			after, err := p.version(ctx, each.to)
			if err != nil && statusOf(err) != http.StatusNotFound {
				return err
			}
			if after != before {
				return fmt.Errorf("%w: in the bucket %s its credentials can %s %s as %s", storage.ErrUnenforced,
					p.bucket, try.what, each.to, each.by)
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

// forbidden returns the requests that must be refused to the credentials.
func (p *vendProbe) forbidden(engine *s3.Client, write bool) []trial {
	var trials []trial
	for _, other := range p.beside {
		trials = append(trials,
			trial{"read in " + other.what, p.reads(engine, other.key+probeData)},
			trial{"write in " + other.what, p.writes(engine, other.key+probeData)},
			trial{"list " + other.what, p.lists(engine, other.key+"/")},
			trial{"delete in " + other.what, p.deletes(engine, other.key+probeData)})
	}
	trials = append(trials, trial{"list everything that begins like their folder", p.lists(engine, p.inside)})
	if !write {
		trials = append(trials,
			trial{"write, and are for reading", p.writes(engine, p.inside+probeData)},
			trial{"delete, and are for reading", p.deletes(engine, p.inside+probeData)})
	}
	if write && !p.store.client.vending.OpenMetadata {
		trials = append(trials, trial{"write a metadata file", p.writes(engine, p.inside+probeMetadata)},
			trial{"write a metadata file elsewhere in its folder", p.writes(engine, p.inside+probeElsewhere)})
	}
	return trials
}

// maker names the server that issues credentials.
func (p *vendProbe) maker() string {
	if endpoint := p.store.client.vending.Endpoint; endpoint != "" {
		return endpoint
	}
	return "Amazon's STS"
}

func (p *vendProbe) writes(client *s3.Client, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &p.bucket, Key: &key, Body: strings.NewReader("probe"),
			ContentMD5: aws.String(encodeMD5([]byte("probe"))),
		})
		return err
	}
}

func (p *vendProbe) reads(client *s3.Client, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &p.bucket, Key: &key})
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
}

func (p *vendProbe) lists(client *s3.Client, prefix string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: &prefix})
		return err
	}
}

// deletes sends a bulk delete, which can be refused as a whole or for the object.
func (p *vendProbe) deletes(client *s3.Client, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &p.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: &key}}},
		})
		if err != nil {
			return err
		}
		for _, failed := range answer.Errors {
			return refusal{aws.ToString(failed.Code)}
		}
		return nil
	}
}

// refusal is the server's code for not deleting an object.
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
