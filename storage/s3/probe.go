package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
	"moorage/storage/cloud"
)

// The known behaviour of writes to a bucket.
const (
	writesUnknown       uint32 = iota
	writesConditional          // the server honours If-None-Match
	writesUnconditional        // it ignores or refuses the header
)

// bucket is the known state of a bucket.
type bucket struct {
	writes  atomic.Uint32
	probing atomic.Bool // a Create is probing the bucket
	// checksCRC32C is set once the server has refused a wrong CRC32C and accepted a correct one.
	checksCRC32C atomic.Bool
	// refusesSums is set once the server has refused a write with a checksum and accepted the same
	// write without a checksum.
	refusesSums atomic.Bool
	deletes     atomic.Uint32 // see deletesSummed
}

// stamp returns the cheapest checksum that the server is known to check.
func (b *bucket) stamp() stamp {
	switch {
	case b.checksCRC32C.Load():
		return stampCRC32C
	case b.refusesSums.Load():
		return stampMD5
	}
	return stampSHA256
}

// Probe checks that the buckets of the roots exist and are writable. It detects whether the server
// honours conditional writes. If not, it logs a warning, once for each bucket. It also detects
// whether the server checks CRC32C. It writes a small object in each bucket and deletes it. It
// returns ErrNotFound if a bucket is missing.
func (s *Store) Probe(ctx context.Context) error {
	keys, names := s.roots.Shortest()
	var failures []error
	for _, name := range names {
		err := s.client.lookForBucket(ctx, name)
		if err == nil {
			err = s.client.probeWrites(ctx, name, keys[name])
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// lookForBucket returns nil if the bucket called name exists and can be reached.
func (c *Client) lookForBucket(ctx context.Context, name string) error {
	_, err := c.sdk.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	if err == nil {
		return nil
	}
	if none, ok := errors.AsType[noCredentials](err); ok {
		return none
	}
	return c.explainLook(name, err)
}

// explainLook adds the relevant option to the error of a failure to find a bucket.
func (c *Client) explainLook(name string, err error) error {
	options := c.sdk.Options()
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		region := response.Response.Header.Get("X-Amz-Bucket-Region")
		switch status := response.HTTPStatusCode(); {
		case status == http.StatusNotFound:
			return fmt.Errorf("%w: there is no bucket called %s", storage.ErrNotFound, name)
		case region != "" && region != options.Region:
			return fmt.Errorf("the bucket %s is in the region %s, and requests go to %s: set the option %s=%s: %w",
				name, region, options.Region, OptionRegion, region, err)
		case status == http.StatusForbidden, status == http.StatusUnauthorized:
			return fmt.Errorf("the server refuses requests for the bucket %s, with the key and the region %s: check "+
				"the key, its rights on the bucket, and the option %s: %w", name, options.Region, OptionRegion, err)
		}
	}
	if _, isUnknown := errors.AsType[*net.DNSError](err); isUnknown && !options.UsePathStyle {
		return fmt.Errorf("find the bucket %s: its name is in the name of the host; if the server has buckets in the "+
			"path, set the option %s=true: %w", name, OptionPathStyle, err)
	}
	return fmt.Errorf("find the bucket %s: %w", name, err)
}

// writesConditionally reports whether writes to a bucket must have the header If-None-Match. As
// long as the server's behaviour is unknown, writes have the header. A server that ignores the
// header does no harm, and a server that refuses the header writes nothing. The first caller probes
// the bucket.
func (s *Store) writesConditionally(ctx context.Context, name string) bool {
	known := s.client.bucket(name)
	if known.writes.Load() == writesUnknown && known.probing.CompareAndSwap(false, true) {
		defer known.probing.Store(false)
		keys, _ := s.roots.Shortest()
		if err := s.client.probeWrites(ctx, name, keys[name]); err != nil {
			s.client.log.WarnContext(ctx, "could not find out whether the S3 server honours conditional writes",
				"bucket", name, "error", err)
		}
	}
	return known.writes.Load() != writesUnconditional
}

func (c *Client) bucket(name string) *bucket {
	found, _ := c.buckets.LoadOrStore(name, new(bucket))
	return found.(*bucket)
}

// foundUnconditional records that the server has ignored or refused the header If-None-Match.
func (c *Client) foundUnconditional(ctx context.Context, name string) {
	if c.bucket(name).writes.Swap(writesUnconditional) != writesUnconditional {
		c.log.WarnContext(ctx, "the S3 server does not honour conditional writes (If-None-Match): "+
			"only random file names keep files from being overwritten", "bucket", name)
	}
}

// probeWrites writes one object twice. The server must refuse the second write. The object's name
// is random. So if the server refuses the first write because the name is taken, an earlier attempt
// of that write has succeeded. Then probeWrites probes checksums on the same object.
func (c *Client) probeWrites(ctx context.Context, name, root string) error {
	id, err := cloud.NewWriteID(c.random)
	if err != nil {
		return err
	}
	o := object{bucket: name, key: cloud.Below(root) + cloud.ProbePrefix + id}
	o.location = storage.Location{Scheme: storage.SchemeS3, Authority: name, Path: "/" + o.key}.String()

	etag, err := c.put(ctx, o, nil, id, true)
	if isUnknownForm(err) && c.bucket(name).refusesSums.CompareAndSwap(false, true) {
		again, againErr := c.put(ctx, o, nil, id, true)
		if status := statusOf(againErr); againErr != nil && status == statusOf(err) {
			c.bucket(name).refusesSums.Store(false) // the checksum was not the reason
		} else {
			etag, err = again, againErr
		}
	}
	written := err == nil
	if written && etag == "" {
		err = c.confirm(ctx, o, id)
	}
	if err == nil {
		_, err = c.put(ctx, o, nil, id, true)
	}
	var failure error
	switch {
	case statusOf(err) == http.StatusPreconditionFailed:
		c.bucket(name).writes.Store(writesConditional)
		written = true
	case err == nil, statusOf(err) == http.StatusNotImplemented: // some servers refuse an unknown header
		c.foundUnconditional(ctx, name)
	default:
		failure = fmt.Errorf("write %s: %w", o.location, err)
	}
	if !written {
		return failure
	}
	if failure == nil {
		c.probeChecksums(ctx, o, id)
	}
	// The caller may already be gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloud.ProbeEndTimeout)
	defer cancel()
	if failures := c.deleteObjects(ctx, name, []types.ObjectIdentifier{{Key: &o.key}}); len(failures) > 0 {
		return errors.Join(failure, fmt.Errorf("delete the files of the probe: %w", errors.Join(failures...)))
	}
	return failure
}

// probeChecksums replaces the object o of a probe twice. The two writes differ only in their
// CRC32C. The server must refuse the write with the wrong CRC32C as a bad request, and accept the
// other. Only both results together prove that the server checks CRC32C. On any other answer the
// bucket's writes keep their SHA-256, and the next probe tries again.
func (c *Client) probeChecksums(ctx context.Context, o object, id string) {
	known := c.bucket(o.bucket)
	if known.checksCRC32C.Load() || known.refusesSums.Load() {
		return
	}
	body := []byte(id)
	wrong, right := newPut(o, body, id), newPut(o, body, id)
	stampCRC32C(wrong, body[1:])
	stampCRC32C(right, body)
	if _, err := c.send(ctx, wrong); statusOf(err) != http.StatusBadRequest {
		return
	}
	if etag, err := c.send(ctx, right); err == nil && etag != "" {
		known.checksCRC32C.Store(true)
	}
}
