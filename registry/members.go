package registry

// The names of the members of each kind of record.
var (
	warehouseMembers     = MembersOf[Warehouse]()
	namespaceMembers     = MembersOf[Namespace]()
	entryMembers         = MembersOf[Entry]()
	pointerMembers       = MembersOf[Pointer]()
	uuidClaimMembers     = MembersOf[TableUUIDClaim]()
	locationClaimMembers = MembersOf[LocationClaim]()
	tombstoneMembers     = MembersOf[Tombstone]()
	droppedMembers       = MembersOf[Dropped]()
	labelsMembers        = MembersOf[Labels]()
	changeMembers        = MembersOf[Change]()
	taskMembers          = MembersOf[Task]()
	idempotencyMembers   = MembersOf[Idempotency]()
	assignmentMembers    = MembersOf[Assignment]()
	horizonMembers       = MembersOf[Horizon]()
	retentionMembers     = MembersOf[Retention]()
	formatMembers        = MembersOf[Format]()
	principalMembers     = MembersOf[Principal]()
	roleMembers          = MembersOf[Role]()
	grantsMembers        = MembersOf[Grants]()
	epochMembers         = MembersOf[Epoch]()
	recentMembers        = MembersOf[Recent]()
	accessStoreMembers   = MembersOf[AccessStore]()
	publicKeyMembers     = MembersOf[PublicKey]()
	makerMembers         = MembersOf[Maker]()
	consoleKeyMembers    = MembersOf[ConsoleKey]()
)

// Members implements Value.
func (Warehouse) Members() *Members { return warehouseMembers }

// Members implements Value.
func (Namespace) Members() *Members { return namespaceMembers }

// Members implements Value.
func (Entry) Members() *Members { return entryMembers }

// Members implements Value.
func (Pointer) Members() *Members { return pointerMembers }

// Members implements Value.
func (TableUUIDClaim) Members() *Members { return uuidClaimMembers }

// Members implements Value.
func (LocationClaim) Members() *Members { return locationClaimMembers }

// Members implements Value.
func (Tombstone) Members() *Members { return tombstoneMembers }

// Members implements Value.
func (Dropped) Members() *Members { return droppedMembers }

// Members implements Value.
func (Labels) Members() *Members { return labelsMembers }

// Members implements Value.
func (Change) Members() *Members { return changeMembers }

// Members implements Value.
func (Task) Members() *Members { return taskMembers }

// Members implements Value.
func (Idempotency) Members() *Members { return idempotencyMembers }

// Members implements Value.
func (Format) Members() *Members { return formatMembers }

// Members implements Value.
func (Assignment) Members() *Members { return assignmentMembers }

// Members implements Value.
func (Horizon) Members() *Members { return horizonMembers }

// Members implements Value.
func (Retention) Members() *Members { return retentionMembers }

// Members implements Value.
func (Principal) Members() *Members { return principalMembers }

// Members implements Value.
func (Role) Members() *Members { return roleMembers }

// Members implements Value.
func (Grants) Members() *Members { return grantsMembers }

// Members implements Value.
func (Epoch) Members() *Members { return epochMembers }

// Members implements Value.
func (Recent) Members() *Members { return recentMembers }

// Members implements Value.
func (AccessStore) Members() *Members { return accessStoreMembers }

// Members implements Value.
func (PublicKey) Members() *Members { return publicKeyMembers }

// Members implements Value.
func (Maker) Members() *Members { return makerMembers }

// Members implements Value.
func (ConsoleKey) Members() *Members { return consoleKeyMembers }
