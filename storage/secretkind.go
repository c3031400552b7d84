package storage

// KindUnknown is the kind of a secret with unknown members.
const KindUnknown = "unknown"

// SecretKind returns the kind of a secret, from the names of its members: access-key for S3,
// service-account for Google Cloud Storage, client-secret or account-key for Azure, and KindUnknown
// for any other. The result contains no part of the secret.
func SecretKind(secret map[string]string) string {
	for _, kind := range []struct{ member, name string }{
		{"secret-access-key", "access-key"}, {"private_key", "service-account"}, {"client-secret", "client-secret"},
		{"account-key", "account-key"},
	} {
		if _, found := secret[kind.member]; found {
			return kind.name
		}
	}
	return KindUnknown
}
