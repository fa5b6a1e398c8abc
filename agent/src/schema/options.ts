// The functions with which components declare their options. Each returns plain JSON Schema, which also has the TypeScript type of the
// parsed value. validate.ts uses it to check values and fill in defaults; reference pages, completion and resource schemas derive from
// it. Our own keywords start with `x-`. `x-means` is the meaning of a value (meaning.ts), from which the rules for tenants, the ports of
// NetworkPolicies and quotas derive.

import type { AddressMeaning, FileMeaning, LimitName, Meaning } from './meaning.ts'

/** JSON Schema of an option; `T` is the type of its value after validation. */
export interface Option<T> {
  readonly [keyword: string]: unknown
  readonly '~type'?: T
}

export interface Extras<T> {
  /** The value if the user sets none. An option with a default is never undefined. */
  default?: T
  examples?: readonly unknown[]
  /** Alternative names for the option, such as names from other products. */
  aliases?: readonly string[]
  /** The replacement, and the reason for the deprecation. */
  deprecated?: string
  /** Facets of the meaning that the function does not imply. */
  means?: Pick<Meaning, 'explicit' | 'fixed' | 'owner' | 'tenantMinimum'>
}

/** Value type of an option. */
export type OptionValue<O> = O extends Option<infer T> ? T : never

/** Marks an option that may be absent and has no default. */
export interface Optional<T> extends Option<T | undefined> {
  readonly 'x-optional': true
}

export type Options = Readonly<Record<string, Option<unknown>>>

/** The typed, complete options that `build` receives. */
export type Parsed<O extends Options> = { readonly [K in keyof O]: OptionValue<O[K]> }

function option<T>(
  schema: Record<string, unknown>,
  description: string,
  extras: Extras<T> = {},
  meaning?: Meaning,
): Option<T> {
  const { aliases, deprecated, means, ...rest } = extras
  return {
    ...schema,
    description,
    ...rest,
    ...(meaning === undefined && means === undefined ? {} : { 'x-means': { ...meaning, ...means } }),
    ...(aliases === undefined ? {} : { 'x-aliases': aliases }),
    ...(deprecated === undefined ? {} : { deprecated: true, 'x-deprecated': deprecated }),
  }
}

/** Plain text: data that names no file, address or identity. Every string must have a meaning, so there is no generic function. */
export const text = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string' }, description, extras, { text: true })

/** Default ports of HTTP addresses. */
export const webPorts = { http: 80, https: 443 } as const

/** A name that becomes a part of a web service's host, such as a region. */
export const hostPart = { ports: webPorts, bare: 'https', part: true } as const satisfies AddressMeaning

/** An absolute URL with scheme http or https, kept as text. */
export const url = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string', format: 'url' }, description, extras, { address: { ports: webPorts } })

/** An address in another form; `secret` if it may contain a password. */
export const address = (description: string, meaning: AddressMeaning, extras?: Extras<string> & { secret?: true }) => {
  const { secret: isSecret, ...rest } = extras ?? {}
  return option<string>({ type: 'string' }, description, rest, {
    address: meaning,
    ...(isSecret === true ? { secret: true } : {}),
  })
}

/** Text with `{{ field }}` and strftime items; see template.ts. Set `use` if the rendered text is more than data. */
export const template = (
  description: string,
  { use = { text: true }, ...extras }: Extras<string> & { use?: Pick<Meaning, 'address' | 'file' | 'text'> } = {},
) => option<string>({ type: 'string', format: 'template' }, description, extras, use)

/** A value that is never printed: keys, passwords, tokens. */
export const secret = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string' }, description, extras, { secret: true })

/** A path in the file system. */
export const path = (
  description: string,
  file: FileMeaning,
  extras: Extras<string> & { secret?: true } = {},
): Option<string> => {
  const { secret: isSecret, ...rest } = extras
  return option<string>({ type: 'string' }, description, rest, {
    file,
    ...(isSecret === true ? { secret: true } : {}),
  })
}

/** A path to an event field, such as `.a.b`. Some options allow an empty path for no field; their descriptions state it. */
export const fieldPath = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string', format: 'field-path' }, description, extras, { text: true })

/** The source text of a remap program; `condition` for a boolean one. */
export const program = (description: string, use: 'program' | 'condition', extras?: Extras<string>) =>
  option<string>({ type: 'string' }, description, extras, { program: use })

interface Range<T> extends Extras<T> {
  /** The quantity that the number limits. Components of tenants have a maximum for it. */
  limit?: LimitName
  /** The meaning of 0, for people. Without it, 0 is invalid, so no option has an unexplained limit or wait of zero. */
  zero?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
}

export const uint = (description: string, { limit, zero, ...extras }: Range<number> = {}) =>
  option<number>({ type: 'integer', ...fromZero(zero) }, withZero(description, zero), extras, limited(limit))

const fromZero = (zero: string | undefined) => (zero === undefined ? { minimum: 1 } : { minimum: 0, 'x-zero': zero })
const withZero = (description: string, zero: string | undefined) =>
  zero === undefined ? description : `${description} 0: ${zero}.`

const limited = (limit: LimitName | undefined): Meaning | undefined => (limit === undefined ? undefined : { limit })

export const float = (description: string, { zero, ...extras }: Range<number> = {}) =>
  option<number>({ type: 'number', ...(zero === undefined ? {} : fromZero(zero)) }, withZero(description, zero), extras)

/** A whole number of bytes. */
export const bytes = (description: string, { limit, zero, ...extras }: Range<number> = {}) =>
  option<number>(
    { type: 'integer', ...fromZero(zero), 'x-unit': 'bytes' },
    withZero(description, zero),
    extras,
    limited(limit),
  )

/** A number of seconds. Fractions are allowed. */
export const seconds = (description: string, { zero, ...extras }: Range<number> = {}) => {
  const lowest = zero === undefined ? (extras.minimum === undefined ? { exclusiveMinimum: 0 } : {}) : fromZero(zero)
  return option<number>({ type: 'number', ...lowest, 'x-unit': 'seconds' }, withZero(description, zero), extras)
}

export const bool = (description: string, extras?: Extras<boolean>) =>
  option<boolean>({ type: 'boolean' }, description, extras)

/** One of several words. `extensions` are words beyond the requirements; the reference lists them last. */
export const oneOf = <const V extends readonly string[]>(
  values: V,
  description: string,
  { extensions = [], ...extras }: Extras<V[number]> & { extensions?: readonly V[number][] } = {},
) =>
  option<V[number]>(
    { type: 'string', enum: values, ...(extensions.length === 0 ? {} : { 'x-extensions': extensions }) },
    description,
    extras,
  )

export const list = <T>(items: Option<T>, description: string, extras?: Extras<readonly T[]> & { minItems?: number }) =>
  option<readonly T[]>({ type: 'array', items }, description, extras)

/** The names in a map: `header` names are case-insensitive, `template` names are rendered from event fields. By default, plain text. */
export type MapNames = 'header' | 'template'

export const map = <T>(
  values: Option<T>,
  description: string,
  { names, ...extras }: Extras<Readonly<Record<string, T>>> & { names?: MapNames } = {},
) =>
  option<Readonly<Record<string, T>>>(
    { type: 'object', additionalProperties: values, ...(names === undefined ? {} : { 'x-names': names }) },
    description,
    extras,
  )

/** An option that the user may omit; it is then undefined. */
export function optional<T>(inner: Option<T>): Optional<T> {
  return { ...inner, 'x-optional': true } as unknown as Optional<T>
}

/** A table of options. If no member is required, the user may omit it, and the defaults of its members apply. */
export function group<O extends Options>(
  members: O,
  description: string,
  extras: { aliases?: readonly string[]; deprecated?: string } = {},
): Option<Parsed<O>> {
  const filled = !Object.values(members).some(isRequired)
  return option<Parsed<O>>(objectSchema(members), description, {
    ...extras,
    ...(filled ? { default: {} as Parsed<O> } : {}),
  })
}

/** One of several tables. The value of one member selects the table. */
export function tagged<Tag extends string, V extends Readonly<Record<string, Options>>>(
  tag: Tag,
  variants: V,
  description: string,
  extras: Extras<unknown> = {},
) {
  type Variants = { [K in keyof V & string]: { readonly [T in Tag]: K } & Parsed<V[K]> }[keyof V & string]
  const schemas = Object.entries(variants).map(([name, members]) =>
    objectSchema({ [tag]: { type: 'string', const: name } as Option<string>, ...members }),
  )
  return option<Variants>(
    { type: 'object', required: [tag], discriminator: { propertyName: tag }, oneOf: schemas },
    description,
    extras as Extras<Variants>,
  )
}

/** A whole number or one of several words. */
export const intOr = <const V extends readonly string[]>(
  words: V,
  description: string,
  extras: Extras<V[number] | number> & Pick<Range<number>, 'zero' | 'limit'> = {},
) => {
  const { zero, limit, ...rest } = extras
  return option<V[number] | number>(
    {
      anyOf: [
        { type: 'integer', ...fromZero(zero), ...(limit === undefined ? {} : { 'x-means': { limit } }) },
        { type: 'string', enum: words },
      ],
    },
    withZero(description, zero),
    rest,
  )
}

/** Either of two forms, for options with more than one notation. */
export const either = <A, B>(first: Option<A>, second: Option<B>, description: string, extras?: Extras<A | B>) =>
  option<A | B>({ anyOf: [first, second] }, description, extras)

/** JSON Schema of an object with these members and no others. */
export function objectSchema(members: Options): Record<string, unknown> {
  const required = Object.keys(members).filter((name) => isRequired(members[name] as Option<unknown>))
  return { type: 'object', properties: members, required, additionalProperties: false }
}

export function isRequired(member: Option<unknown>): boolean {
  return member['x-optional'] !== true && member['default'] === undefined
}
