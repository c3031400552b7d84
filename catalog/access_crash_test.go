package catalog_test

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/grants"
	"moorage/ledger"
	"moorage/maintenance/purge"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
)

// policyCase is a populated catalog. Bob may read the table t, and principals with keys may see the
// warehouse.
type policyCase struct {
	*catalogkit.Secured
	clock   *clock
	t, u    registry.ID // pointers
	other   registry.ID // namespace
	rawOpen func(storage.Place) (storage.Store, error)
}

// policyMutation is a change of policy. The test makes each of its calls of a port fail in turn.
type policyMutation struct {
	name    string
	prepare func(ctx context.Context, p *policyCase) error // may be nil
	run     func(ctx context.Context, p *policyCase) error
	// recorded reports whether the records show the change, and shown whether the decisions of a
	// node do.
	recorded func(r policyRecords) bool
	shown    func(ctx context.Context, node *catalogkit.Secured) bool
	// If worker is true, run may succeed without an effect, and leave the rest to the next pass.
	worker bool
}

// policyRecords reads the records of a case.
type policyRecords struct {
	*policyCase
	store registry.Store
}

// grants returns the grants on an object. It returns zero if there is no such record.
func (r policyRecords) grants(object registry.ID) (value registry.Grants) {
	return valueAt[registry.Grants](r, registry.GrantsKey(object))
}

// may reports whether the records grant privileges on object to catalogkit.BobName.
func (r policyRecords) may(object registry.ID, privileges access.Privileges) bool {
	return slices.ContainsFunc(r.grants(object).Grants, func(grant registry.Grant) bool {
		held, _ := access.Parse(grant.Privileges)
		return grant.Grantee == catalogkit.BobName && held&privileges == privileges
	})
}

// hasKey reports whether the record of catalogkit.EtlName has an API key.
func (r policyRecords) hasKey(id string) bool {
	principal := valueAt[registry.Principal](r, registry.PrincipalKey(catalogkit.EtlName))
	return slices.ContainsFunc(principal.Keys, func(key registry.APIKey) bool { return key.ID == id })
}

func (r policyRecords) exists(key registry.Key) bool {
	r.Secured.T.Helper()
	records, err := r.store.Get(r.Secured.T.Context(), key)
	must(r.Secured.T, err)
	return records[0].Exists()
}

// valueAt returns the value of the record at key, or zero if there is no record.
func valueAt[T registry.Value](r policyRecords, key registry.Key) (value T) {
	r.Secured.T.Helper()
	records, err := r.store.Get(r.Secured.T.Context(), key)
	must(r.Secured.T, err)
	if records[0].Exists() {
		value, err = ledger.Decode[T](records[0])
		must(r.Secured.T, err)
	}
	return value
}

func (p *policyCase) keySpec(id string) grants.KeySpec {
	return grants.KeySpec{ID: id, SHA256: [32]byte{byte(len(id)), id[0]}, Ends: p.clock.Now().Add(1000 * time.Hour)}
}

func inOther() moorage.Identifier {
	return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other"}, Name: "t"}
}

// grantTo grants privileges, or revokes them, as the administrator does.
func grantTo(revoke bool, object grants.Object, privileges access.Privileges) func(context.Context, *policyCase) error {
	return func(ctx context.Context, p *policyCase) error {
		_, err := p.Admin().ChangeGrants(ctx, []grants.Change{
			{Revoke: revoke, Object: object, Grantee: catalogkit.BobName, Privileges: privileges},
		})
		return err
	}
}

// lives reports whether a node accepts an API key.
func lives(id string) func(context.Context, *catalogkit.Secured) bool {
	return func(ctx context.Context, node *catalogkit.Secured) bool {
		return node.As(catalogkit.KeyedCaller(id)).TableExists(ctx, ident("t")) == nil
	}
}

// not returns the negation of shown.
func not(shown func(context.Context, *catalogkit.Secured) bool) func(context.Context, *catalogkit.Secured) bool {
	return func(ctx context.Context, node *catalogkit.Secured) bool { return !shown(ctx, node) }
}

// bobSees reports whether a node shows catalogkit.BobName a namespace.
func bobSees(name string) func(context.Context, *catalogkit.Secured) bool {
	return func(ctx context.Context, node *catalogkit.Secured) bool {
		_, err := node.Named(catalogkit.BobName).LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{name})
		return err == nil
	}
}

// bobHas reports whether a node shows catalogkit.BobName a table.
func bobHas(ident moorage.Identifier) func(context.Context, *catalogkit.Secured) bool {
	return func(ctx context.Context, node *catalogkit.Secured) bool {
		return node.Named(catalogkit.BobName).TableExists(ctx, ident) == nil
	}
}

func dropT(ctx context.Context, p *policyCase) error {
	return p.Named(catalogkit.AnnName).DropTable(ctx, ident("t"), catalog.DropOptions{})
}

// policyMutations are the changes of policy, and the verbs that end objects with grants.
var policyMutations = []policyMutation{
	{
		name: "grant", run: grantTo(false, catalogkit.OnTable("u"), access.Read),
		recorded: func(r policyRecords) bool { return r.may(r.u, access.Read) },
		shown:    bobHas(ident("u")),
	},
	{
		name: "grant on a namespace", run: grantTo(false, catalogkit.OnNamespace("other"), access.Describe),
		recorded: func(r policyRecords) bool { return r.may(r.other, access.Describe) },
		shown:    bobSees("other"),
	},
	{
		name: "revoke", run: grantTo(true, catalogkit.OnTable("t"), access.Read|access.Describe),
		recorded: func(r policyRecords) bool { return !r.may(r.policyCase.t, access.Read) },
		shown:    not(bobHas(ident("t"))),
	},
	{
		name: "create key",
		run: func(ctx context.Context, p *policyCase) error {
			_, err := p.Admin().CreateKey(ctx, catalogkit.EtlName, p.keySpec(catalogkit.NewKey))
			return err
		},
		recorded: func(r policyRecords) bool { return r.hasKey(catalogkit.NewKey) },
		shown:    lives(catalogkit.NewKey),
	},
	{
		name: "withdraw key",
		run: func(ctx context.Context, p *policyCase) error {
			return p.Admin().WithdrawKey(ctx, catalogkit.EtlName, catalogkit.OldKey)
		},
		recorded: func(r policyRecords) bool { return !r.hasKey(catalogkit.OldKey) },
		shown:    not(lives(catalogkit.OldKey)),
	},
	{
		name: "transfer",
		run: func(ctx context.Context, p *policyCase) error {
			return p.Access(catalogkit.AnnName).SetOwner(ctx, catalogkit.OnTable("t"), catalogkit.BobName, nil)
		},
		recorded: func(r policyRecords) bool { return r.grants(r.policyCase.t).Owner == catalogkit.BobName },
		shown: func(ctx context.Context, node *catalogkit.Secured) bool {
			_, err := node.Access(catalogkit.BobName).GrantsOn(ctx, catalogkit.OnTable("t"))
			return err == nil
		},
	},
	{
		name: "rename",
		run: func(ctx context.Context, p *policyCase) error {
			return p.Named(catalogkit.AnnName).RenameTable(ctx, ident("t"), inOther())
		},
		recorded: func(r policyRecords) bool { return r.grants(r.policyCase.t).Ancestors[0] == r.other },
		shown:    bobSees("other"),
	},
	{
		name: "unregister",
		run: func(ctx context.Context, p *policyCase) error {
			_, err := p.Named(catalogkit.AnnName).UnregisterTable(ctx, ident("t"))
			return err
		},
		recorded: func(r policyRecords) bool { return !r.exists(registry.GrantsKey(r.policyCase.t)) },
		shown:    not(bobSees("ns")),
	},
	{
		name: "drop namespace", prepare: grantTo(false, catalogkit.OnNamespace("other"), access.Describe),
		run: func(ctx context.Context, p *policyCase) error {
			return p.Named(catalogkit.AnnName).DropNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"other"})
		},
		recorded: func(r policyRecords) bool { return !r.exists(registry.GrantsKey(r.other)) },
		shown:    not(bobSees("other")),
	},
	{
		name: "end", worker: true,
		prepare: func(ctx context.Context, p *policyCase) error {
			defer p.clock.Advance(catalogkit.UndropWindow + time.Hour)
			return dropT(ctx, p)
		},
		run:      func(ctx context.Context, p *policyCase) error { return p.EndWindows(ctx) },
		recorded: func(r policyRecords) bool { return !r.exists(registry.GrantsKey(r.policyCase.t)) },
		shown:    not(bobSees("ns")),
	},
	{
		name: "purge", worker: true,
		prepare: func(ctx context.Context, p *policyCase) error {
			return p.Named(catalogkit.AnnName).DropTable(ctx, ident("t"), catalog.DropOptions{Purge: true})
		},
		run:      func(ctx context.Context, p *policyCase) error { return p.PurgeAll(ctx) },
		recorded: func(r policyRecords) bool { return !r.exists(registry.GrantsKey(r.policyCase.t)) },
		shown:    not(bobSees("ns")),
	},
}

// newPolicyCase returns a case over raw. Its calls meet the faults of plan.
func newPolicyCase(t *testing.T, raw *registrytest.FaultyStore, clock *clock, alone bool, plan *faults) *policyCase {
	t.Helper()
	p := &policyCase{clock: clock}
	p.Secured = catalogkit.NewSecured(t, raw, alone, func(c *catalog.Config) {
		p.rawOpen, c.Now = c.OpenStorage, clock.Now
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := p.rawOpen(place)
			if err != nil {
				return nil, err
			}
			return storagetest.Faulty(inner, plan.storagePlan), nil
		}
	})
	p.Populate()
	p.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
	p.Grant(catalogkit.OnWarehouse(), catalogkit.EtlName, access.Describe)
	_, err := p.Admin().CreateKey(t.Context(), catalogkit.EtlName, p.keySpec(catalogkit.OldKey))
	must(t, err)
	for name, id := range map[string]*registry.ID{"t": &p.t, "u": &p.u} {
		table, err := p.Named(catalogkit.AnnName).LoadTable(t.Context(), ident(name))
		must(t, err)
		*id = table.PointerID()
	}
	path, err := p.Directory.Path(t.Context(), catalogkit.Warehouse, moorage.Namespace{"other"})
	must(t, err)
	p.other = path.ID()
	catalog.SetSettleTimeout(p.Catalog, 20*time.Millisecond)
	return p
}

// For k = 0, 1, 2 …: a fault hits the k-th port call of each change of policy, as in
// TestCrashEveryCall. The records must agree with the answer. So must the decisions of a node, both
// of the node that met the fault and of one that has just started. After a restart, Check must find
// nothing.
func TestCrashEveryCallOfPolicy(t *testing.T) {
	t.Parallel()
	actions := map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
		"die": registrytest.Die, "die after": registrytest.DieAfter,
	}
	stride := scale.Stride("memory", 0)
	chance := newLockedRandom(catalogkit.NewSeed(t)).Rand()
	for storeName, alone := range map[string]bool{"alone": true, "shared": false} {
		for _, m := range policyMutations {
			for actionName, action := range actions {
				if m.worker && action == registrytest.DieAfter && !scale.Every() {
					continue // a worker spends ten seconds on finding the outcome of its Apply
				}
				first := chance.IntN(stride)
				t.Run(fmt.Sprintf("%s/%s/%s", storeName, m.name, actionName), func(t *testing.T) {
					t.Parallel()
					for k := first; !crashPolicyOnce(t, m, alone, k, action); k += stride {
						if k > 200 {
							t.Fatal("the calls do not end")
						}
					}
				})
			}
		}
	}
}

// crashPolicyOnce applies action to call k of m, and reports whether m made no such call.
func crashPolicyOnce(t *testing.T, m policyMutation, alone bool, k int, action registrytest.Action) (survived bool) {
	t.Helper()
	ctx, clock, plan := t.Context(), newClock(), &faults{}
	raw := catalogkit.ClockedStore{Store: memoryregistry.New(cryptorand.Reader), Now: clock.Now}
	store := registrytest.Faulty(raw, plan.plan)
	p := newPolicyCase(t, store, clock, alone, plan)
	if m.prepare != nil {
		must(t, m.prepare(ctx, p))
	}
	records := policyRecords{p, raw}
	if records.recorded(m) || m.shown(ctx, p.Secured) {
		t.Fatal("it has happened before it begins")
	}
	plan.arm(k, action)
	err := m.run(ctx, p)
	plan.disarm()
	survived = plan.hit == ""
	at := fmt.Sprintf("call %d (%s): answered %v", k, plan.hit, err)
	switch {
	case survived && err != nil:
		t.Fatalf("%s without a fault", at)
	case survived && k < 2:
		t.Fatal("hardly a call was seen")
	}
	fresh := func() *catalogkit.Secured {
		return catalogkit.Secure(t, raw, false, func(c *catalog.Config) { c.OpenStorage, c.Now = p.rawOpen, clock.Now })
	}
	definite := !plan.dead && moorage.KindOf(err) != moorage.KindCommitUnknown || err == nil
	for _, moment := range []string{"at once", "after late writes"} {
		if moment == "after late writes" {
			store.Release(ctx)
		}
		happened := records.recorded(m)
		if definite && (!m.worker || survived) && happened != (err == nil) {
			t.Fatalf("%s, but %s happened is %t", at, moment, happened)
		}
		if shown := m.shown(ctx, fresh()); shown != happened {
			t.Fatalf("%s; %s a new node shows %t, the records say %t", at, moment, shown, happened)
		}
		if plan.dead {
			continue
		}
		if shown := m.shown(ctx, p.Secured); shown != happened {
			t.Fatalf("%s; %s the node shows %t, the records say %t", at, moment, shown, happened)
		}
	}
	clock.Advance(max(directory.DroppingStale, purge.AssignmentLife) + time.Second)
	node := fresh()
	must(t, node.PurgeAll(ctx))
	must(t, node.EndWindows(ctx))
	catalogkit.WantClean(t, node.Instance)
	if m.worker && !records.recorded(m) {
		t.Errorf("%s: the next pass does not end it", at)
	}
	if t.Failed() {
		t.Fatalf("%s: see above", at)
	}
	return survived
}

func (r policyRecords) recorded(m policyMutation) bool { return m.recorded(r) }
