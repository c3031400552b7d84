package ascode

import (
	"slices"
	"strings"
)

// SecretRef says where the secret of a storage is.
type SecretRef struct {
	Kind string `code:"kind" help:"access-key, service-account, client-secret or account-key." needed:"yes"`
	Env  string `code:"env" help:"Environment variable with the JSON of a --secret-file." needed:"yes"`
}

// secretOf returns the reference that an export has for a secret of a kind; nil for no secret.
func secretOf(warehouse, kind string) *SecretRef {
	if kind == "" {
		return nil
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(warehouse))
	return &SecretRef{Kind: kind, Env: "MOORAGE_SECRET_" + name}
}

// secretsOf returns the environment variables of the secrets that steps set, sorted, each once.
func (c Catalog) secretsOf(steps []Step) (names []string) {
	for _, step := range steps {
		for _, change := range step.Changes {
			if change.Fact.Attribute == Secret {
				names = append(names, c.Warehouses[step.Object.Warehouse].Secret.Env)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
