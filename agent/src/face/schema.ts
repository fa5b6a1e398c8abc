// Declarations as data: traversal of options, their meaning for tenants, and the rules for programs. It does not load components, because
// every resource kind needs it.

export type { AnyDeclaration, ComponentKind, LogPosition } from '../component.ts'
export {
  defaultBudget,
  maxBudget,
  type ProgramBudget,
  type ProgramRules,
  platformRules,
  restrictedBy,
  unopenedRules,
} from '../remap/rules.ts'
export {
  type AddressMeaning,
  type Authority,
  authoritiesOf,
  implicitIdentities,
  isFileUrl,
  type LimitName,
  limits,
  type Meaning,
  meaningOf,
  namesFile,
  operatorTreatment,
} from '../schema/meaning.ts'
export type { Options } from '../schema/options.ts'
export {
  aliasesOf,
  canonicalPatterns,
  declaredMembers,
  isTable,
  listOf,
  matchesPath,
  memberNamed,
  membersOf,
  pathOf,
  type Schema,
  schemaBelow,
  tableOf,
  variantsFor,
  variantsOf,
  type WalkedValue,
  walkOptions,
} from '../schema/walk.ts'
export { type MultilineMode, multilineModes } from '../tailing/multiline-mode.ts'
