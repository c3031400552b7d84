package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage"
)

const (
	// renewInterval is the maximum age of an issuer's keys. If the issuer withdraws a key, the key
	// remains valid here until then.
	renewInterval = 15 * time.Minute
	// renewPause is the minimum time between the beginnings of two fetches from one issuer.
	renewPause = 30 * time.Second
	// keysServe is the time for which the last keys remain valid while they cannot be renewed.
	keysServe = 24 * time.Hour
)

// issuer verifies the tokens of one outside issuer. It is safe for concurrent use.
type issuer struct {
	config  IssuerConfig
	fetcher *fetcher
	now     func() time.Time
	logger  *slog.Logger

	mu       sync.Mutex    // guards the fields below; no lock is taken, and no I/O done, under it
	set      *keySet       // nil until the first fetch
	fetched  time.Time     // when set was fetched
	tried    time.Time     // when the last fetch began
	fetching chan struct{} // closed when the fetch in progress ends; nil if there is none
	failed   bool          // the last fetch failed, at least in part
	found    *discovery    // nil until read; always nil if not needed
}

func newIssuer(config IssuerConfig, timeout time.Duration, now func() time.Time, logger *slog.Logger) (
	*issuer, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("issuer %s: %w", config.Alias, err)
	}
	fetcher, err := newFetcher(config, timeout)
	if err != nil {
		return nil, err
	}
	return &issuer{config: config, fetcher: fetcher, now: now, logger: logger.With("issuer", config.Alias)}, nil
}

// keys returns the present keys. It returns nil if there are no keys, or if they are too old.
func (i *issuer) keys() *keySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now().Sub(i.fetched) > keysServe {
		return nil
	}
	return i.set
}

// renew fetches the keys, unless a fetch has begun within the last renewPause. If a fetch is in
// progress, renew waits for its end.
func (i *issuer) renew(ctx context.Context) {
	i.mu.Lock()
	if underWay := i.fetching; underWay != nil {
		i.mu.Unlock()
		select {
		case <-underWay:
		case <-ctx.Done():
		}
		return
	}
	now := i.now()
	if since := now.Sub(i.tried); !i.tried.IsZero() && since >= 0 && since < renewPause {
		i.mu.Unlock()
		return
	}
	done := make(chan struct{})
	i.fetching, i.tried = done, now
	i.mu.Unlock()
	// Other requests wait for this fetch too. So it continues if the request that began it is
	// canceled.
	set, found, err := i.fetcher.fetch(context.WithoutCancel(ctx))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetching = nil
	close(done)
	if found != nil {
		i.found = found
	}
	if set != nil {
		i.fetched = now
		if i.set == nil || i.set.text != set.text { // an unchanged set stays, with its cached callers
			i.set = set
		}
	}
	if err != nil {
		fault := []slog.Attr{slog.String("error", moorage.OneLine(err.Error())), slog.Bool("known", i.set != nil)}
		if set == nil {
			i.logger.LogAttrs(ctx, slog.LevelWarn,
				"the keys of an issuer cannot be fetched; known keys are still accepted", fault...)
		} else {
			i.logger.LogAttrs(ctx, slog.LevelWarn,
				"the discovery document of an issuer cannot be fetched; its keys can", fault[:1]...)
		}
		i.failed = true
		return
	}
	if i.failed {
		i.logger.LogAttrs(ctx, slog.LevelInfo, "the keys of an issuer can be fetched again")
	}
	i.failed = false
}

// isStale reports whether the keys are so old that the background worker must renew them.
func (i *issuer) isStale(age time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed || i.set == nil || i.now().Sub(i.fetched) >= age
}

// verify returns the caller of t, and the keys used to verify it.
func (i *issuer) verify(ctx context.Context, t *token) (moorage.Caller, *keySet, error) {
	set, err := i.checkSignature(ctx, t)
	if err != nil {
		return moorage.Caller{}, nil, err
	}
	caller, err := i.callerOf(t.claims)
	return caller, set, err
}

// checkSignature verifies the signature of t, and returns the keys used for that.
func (i *issuer) checkSignature(ctx context.Context, t *token) (*keySet, error) {
	if !slices.Contains(i.config.algorithms(), t.algorithm) {
		return nil, refuse(reasonAlgorithm)
	}
	set := i.keys()
	if set == nil {
		i.renew(ctx)
		if set = i.keys(); set == nil {
			return nil, unavailable("issuer "+i.config.Alias, errors.New("its keys are not known"))
		}
	}
	key, known, err := set.find(t.algorithm, t.kid)
	if err == nil && !known {
		i.renew(ctx)
		if set = i.keys(); set != nil {
			key, known, err = set.find(t.algorithm, t.kid)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, refuse(reasonKey)
	}
	if _, err := t.signed.Verify(key); err != nil {
		return nil, refuse(reasonSignature)
	}
	return set, nil
}

// callerOf returns the caller in claims that the issuer has signed.
func (i *issuer) callerOf(c claims) (moorage.Caller, error) {
	ends, err := c.checkTimes(i.now(), lifetimeMax, leeway)
	if err != nil {
		return moorage.Caller{}, err
	}
	audiences, err := c.texts("aud")
	if err != nil || !slices.Contains(audiences, i.config.Audience) {
		return moorage.Caller{}, refuse(reasonAudience)
	}
	kind, _ := c.text("typ") // Keycloak signs other kinds of tokens too
	isID := kind == "ID" || c["nonce"] != nil
	if slices.Contains([]string{"Refresh", "Offline", "Logout"}, kind) || isID && i.config.SignIn.Token != TokenID {
		return moorage.Caller{}, refuse(reasonKind)
	}
	if subject, ok := c.text("sub"); !ok || subject == "" {
		return moorage.Caller{}, refuse(reasonClaims)
	}
	subjects, err := c.texts(i.config.Subject)
	if err != nil || len(subjects) != 1 {
		return moorage.Caller{}, refuse(reasonClaims)
	}
	name, ok := nameOf(i.config.Alias, subjects[0])
	if !ok {
		return moorage.Caller{}, refuse(reasonName)
	}
	roles, err := i.rolesOf(c)
	if err != nil {
		return moorage.Caller{}, err
	}
	return moorage.Caller{Name: name, Roles: roles, Source: moorage.SourceIssuer, Ends: ends.Add(leeway)}, nil
}

// rolesOf returns the roles in claims, in the store's form.
func (i *issuer) rolesOf(c claims) (roles []string, err error) {
	if i.config.Roles != "" {
		if isElsewhere(c, i.config.Roles) {
			return nil, refuse(reasonRoles)
		}
		named, err := c.texts(i.config.Roles)
		if err != nil {
			return nil, err
		}
		for _, role := range named {
			if role, ok := strings.CutPrefix(role, i.config.RolesPrefix); ok && role != "" {
				roles = append(roles, i.config.Alias+"/"+role)
			}
		}
	}
	if namespace, ok := serviceNamespace(c); ok {
		roles = append(roles, i.config.Alias+"/ns/"+namespace)
	}
	if len(roles) > rolesMax {
		return nil, refuse(reasonRoles)
	}
	for _, role := range roles {
		if !isName(role) {
			return nil, refuse(reasonRoles)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles), nil
}

// isElsewhere reports whether the claim at path is missing because it is too long. In that case,
// the issuer gives an address from which to fetch the claim. Entra does so for 200 groups or more.
func isElsewhere(c claims, path string) bool {
	var names map[string]json.RawMessage
	if json.Unmarshal(c["_claim_names"], &names) != nil {
		return false
	}
	name, _, _ := strings.Cut(path, ".")
	_, found := names[name]
	return found
}

// serviceNamespace returns the namespace of a Kubernetes service account.
func serviceNamespace(c claims) (namespace string, ok bool) {
	subject, _ := c.text("sub")
	rest, ok := strings.CutPrefix(subject, "system:serviceaccount:")
	if !ok || c["kubernetes.io"] == nil {
		return "", false
	}
	namespace, _, ok = strings.Cut(rest, ":")
	return namespace, ok && namespace != ""
}
