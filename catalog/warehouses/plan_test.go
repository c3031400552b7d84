package warehouses

// This test is in the package because the plan is not exported. The effects of a create on a store
// are tested from outside.

import (
	"testing"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// TestPlanCreate: a create requires that its name is free, and writes the record and the secret.
func TestPlanCreate(t *testing.T) {
	t.Parallel()
	key, secret := registry.WarehouseKey("w"), registry.ID{15: 9}
	value := registry.Warehouse{ID: registry.ID{15: 1}}
	for _, row := range []struct {
		name   string
		secret registry.ID
		keys   []registry.Key
	}{
		{"without a secret", registry.ID{}, []registry.Key{key}},
		{"with a secret", secret, []registry.Key{key, registry.SecretKey(secret)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			value := value
			value.Secret.ID = row.secret
			plan, err := planCreate(kept{name: "w", value: value}, registry.Secret{})
			if err != nil || len(plan.Conditions) != len(row.keys) || len(plan.Writes) != len(row.keys) {
				t.Fatalf("got %+v, %v", plan, err)
			}
			for i, key := range row.keys {
				if plan.Conditions[i] != registry.Absent(key) || plan.Writes[i].Key != key || plan.Writes[i].Delete {
					t.Errorf("requires %v and writes %v, want both of %s", plan.Conditions[i], plan.Writes[i], key)
				}
			}
			if state := plan.Writes[0].State; state != registry.StateLive {
				t.Errorf("the warehouse is %s", state)
			}
		})
	}
	writes, err := ledger.Encode(ledger.Put(key, registry.StateLive, value))
	if err != nil {
		t.Fatal(err)
	}
	taken := registry.Record{Key: key, State: registry.StateLive, ETag: registry.ETag{15: 3}, Value: writes[0].Value}
	if plan, err := planCreate(kept{name: "w", record: taken, value: value}, registry.Secret{}); moorage.KindOf(err) != moorage.KindAlreadyExists {
		t.Errorf("with a name in use the plan is %+v, %v", plan, err)
	}
}
