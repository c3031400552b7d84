package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"moorage/storage"
	"moorage/storage/cloud"
)

// Probe checks that the buckets of the roots exist and are writable, and that the server refuses a
// conditional write to an existing object. It writes a small object in each bucket and deletes it.
// It returns ErrNotFound if a bucket is missing.
func (s *Store) Probe(ctx context.Context) error {
	roots, buckets := s.roots.Shortest()
	var failures []error
	for _, bucket := range buckets {
		err := s.client.lookForBucket(ctx, bucket, cloud.Below(roots[bucket]))
		if err == nil {
			err = s.client.probeWrites(ctx, bucket, roots[bucket])
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// lookForBucket returns nil if there is a bucket whose objects can be listed. It lists objects
// instead of reading the bucket's properties, because reading them needs a permission on the
// bucket. prefix is a prefix that may be listed.
func (c *Client) lookForBucket(ctx context.Context, bucket, prefix string) error {
	_, _, err := c.list(ctx, bucket, prefix, "", 1)
	switch {
	case err == nil:
		return nil
	case statusOf(err) == http.StatusNotFound:
		return fmt.Errorf("%w: there is no bucket called %s", storage.ErrNotFound, bucket)
	}
	return fmt.Errorf("find the bucket %s: %w", bucket, err)
}

// probeWrites writes one object twice. The second write must be refused. The object's name is
// random. So if the server refuses the first write because the name is taken, an earlier attempt of
// that write has succeeded.
func (c *Client) probeWrites(ctx context.Context, bucket, root string) (err error) {
	id, err := cloud.NewWriteID(c.random)
	if err != nil {
		return err
	}
	name := cloud.Below(root) + cloud.ProbePrefix + id
	probe := object{location: storage.SchemeGCS + "://" + bucket + "/" + name, bucket: bucket, name: name}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloud.ProbeEndTimeout)
		defer cancel()
		err = errors.Join(append([]error{err}, c.deleteOne(ctx, probe)...)...)
	}()
	if err := c.insert(ctx, probe, []byte(id), id); err != nil && statusOf(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("write to the bucket %s: %w", bucket, err)
	}
	err = c.insert(ctx, probe, []byte(id), id)
	switch {
	case err == nil:
		return fmt.Errorf("the server of the bucket %s replaces objects that it is told to keep "+
			"(ifGenerationMatch=0)", bucket)
	case statusOf(err) != http.StatusPreconditionFailed:
		return fmt.Errorf("write to the bucket %s again: %w", bucket, err)
	}
	return nil
}
