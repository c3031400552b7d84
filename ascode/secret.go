package ascode

import (
	"fmt"
	"slices"
	"strings"
)

// SecretRef locates the secret of a storage.
type SecretRef struct {
	Kind string `code:"kind" help:"access-key, service-account, client-secret or account-key." needed:"yes"`
	Env  string `code:"env" help:"Environment variable with the JSON of a --secret-file." needed:"yes"`
}

// secretOf returns the reference that an export has for a secret of a kind; nil for no secret. It
// adds the environment variable, which is none of taken, to taken.
func secretOf(warehouse, kind string, taken map[string]bool) *SecretRef {
	if kind == "" {
		return nil
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(warehouse))
	name = "MOORAGE_SECRET_" + name
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	taken[free] = true
	return &SecretRef{Kind: kind, Env: free}
}

// isNameOfSecret reports whether an option seems to be a secret. No option of a storage does: the
// server refuses all of these, but a plan would print their values before.
func isNameOfSecret(option string) bool {
	return slices.ContainsFunc([]string{"secret", "password", "token", "access-key", "account-key", "credential"},
		func(word string) bool { return strings.Contains(strings.ToLower(option), word) })
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
