package adls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"moorage/storage"
)

// The parts of a credential, under the names that Iceberg's clients use. Java uses the names
// followed by the account's host, or, when it renews a credential, by the account's name. PyIceberg
// uses the last name.
const (
	configSASHost    = "adls.sas-token."
	configExpiryHost = "adls.sas-token-expires-at-ms."
	configSAS        = "adls.sas-token"
	configRefresh    = "adls.refresh-credentials-endpoint"
)

// Vend signs a credential for the first location of scope. It ignores the other locations, because
// a signature is for one directory.
func (s *Store) Vend(ctx context.Context, scope storage.Scope) (storage.Credential, error) {
	location, err := s.scoped(scope.Locations)
	if err != nil {
		return storage.Credential{}, err
	}
	directory, err := s.directory(location)
	if err != nil {
		return storage.Credential{}, err
	}
	b, err := s.name(location)
	if err != nil {
		return storage.Credential{}, err
	}
	if b.account.keys == nil {
		return storage.Credential{}, fmt.Errorf("adls: credentials for engines need an identity, such as a managed "+
			"one; the server reaches the account %s with its key", b.account.name)
	}
	duration := min(max(cmp.Or(scope.Duration, s.client.options.Duration), durationMin), durationMax)
	expiry := s.client.now().Add(duration).UTC().Truncate(time.Second)
	key, err := b.account.keys.get(ctx, expiry)
	if err != nil {
		return storage.Credential{}, vendError(ctx, err)
	}
	permissions := permissionsRead
	if scope.Write {
		permissions = permissionsWrite
	}
	signature, err := grant{b.account.name, b.container, directory, permissions, expiry}.sign(key)
	if err != nil {
		return storage.Credential{}, err
	}
	return newCredential(location, signature, expiry), nil
}

// CredentialLife returns the lifetime of a credential.
func (s *Store) CredentialLife() time.Duration { return s.client.options.Duration }

// scoped returns the first of locations. All must be within the roots of the store.
func (s *Store) scoped(locations []string) (storage.Location, error) {
	parsed, err := s.roots.Scope(locations)
	if err != nil {
		return storage.Location{}, err
	}
	if len(parsed) == 0 {
		return storage.Location{}, fmt.Errorf("%w: there are no locations", storage.ErrUnscopable)
	}
	return parsed[0], nil
}

// directory returns the directory of a location for a signature. It returns ErrUnscopable if no
// signature can express exactly this location.
func (s *Store) directory(location storage.Location) (string, error) {
	refuse := func(reason string) error {
		return fmt.Errorf("%w: %s: %s", storage.ErrUnscopable, location, reason)
	}
	switch directory := location.Path[1:]; {
	case !s.client.options.Hierarchical:
		return "", refuse("without a hierarchical namespace a signature opens the whole container; " +
			"if the account has one, set " + OptionHierarchical + "=true")
	case directory == "":
		return "", refuse("it is the container itself")
	case strings.ContainsAny(directory, "%+"):
		return "", refuse("clients of Azure read % and + in different ways")
	default:
		return directory, nil
	}
}

// newCredential encodes a signature for Iceberg's clients. Some clients use a name with the host in
// the table's location, which may be the host for blobs.
func newCredential(location storage.Location, signature string, expiry time.Time) storage.Credential {
	host := hostOf(location)
	name, _, _ := strings.Cut(host, ".")
	ends := strconv.FormatInt(expiry.UnixMilli(), 10)
	config := map[string]string{configSAS: signature}
	for _, known := range []string{host, storage.AzureBlobHost(host), name} {
		config[configSASHost+known], config[configExpiryHost+known] = signature, ends
	}
	return storage.Credential{Config: config, Expires: expiry, RefreshedAt: configRefresh}
}

// vendError converts an error from requesting a key to an error of package storage.
func vendError(ctx context.Context, err error) error {
	status := statusOf(err)
	switch {
	case status == 0 && ctx.Err() == nil && !errors.Is(err, errNoToken), status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: make credentials: %w", storage.ErrUnavailable, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("adls: make credentials: %w: the identity of the server needs the role "+
			"Storage Blob Delegator on the account", err)
	}
	return fmt.Errorf("adls: make credentials: %w", err)
}
