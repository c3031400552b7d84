package storage_test

import (
	"testing"

	"moorage/storage"
)

func TestSecretKind(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		"secret-access-key": "access-key", "private_key": "service-account", "client-secret": "client-secret", "account-key": "account-key",
		"x": storage.KindUnknown,
	} {
		if got := storage.SecretKind(map[string]string{member: "v", "other": "w"}); got != want {
			t.Errorf("a secret with %s is %q, want %q", member, got, want)
		}
	}
}
