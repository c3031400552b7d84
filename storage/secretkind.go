package storage

// KindUnknown is the kind of a secret whose members are of no known kind.
const KindUnknown = "unknown"

// SecretKind says what a secret is, by the names of its members: access-key for S3, service-account
// for Google Cloud Storage, client-secret or account-key for
// Azure, else KindUnknown. It holds nothing of the
// secret.
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
