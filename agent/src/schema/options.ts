// The vocabulary in which components declare their options. Each word returns plain JSON Schema that carries, for the compiler only,
// the type of the parsed value. validate.ts checks values by it and fills in defaults; reference pages, completion and resource schemas
// are derived from it. Our keywords start with `x-`. `x-means` gives the meaning of a value (meaning.ts), from which the rules for
// tenants, the ports of NetworkPolicies and quotas are derived.

import type { AddressMeaning, FileMeaning, LimitName, Meaning } from './meaning.ts'

/** JSON Schema of an option; `T` is the type of its value after validation. */
export interface Option<T> {
  readonly [keyword: string]: unknown
  readonly '~type'?: T
}

export interface Extras<T> {
  /** The value when the user gives none. An option with a default is never undefined. */
  default?: T
  examples?: readonly unknown[]
  /** Other names that are accepted for the option, such as those that users know from elsewhere. */
  aliases?: readonly string[]
  /** Why and since when; what to use instead. */
  deprecated?: string
  /** Facets of the meaning that the word itself does not say. */
  means?: Pick<Meaning, 'explicit' | 'fixed' | 'owner' | 'tenantMinimum'>
}

/** Value type of an option. */
export type OptionValue<O> = O extends Option<infer T> ? T : never

/** Marks an option that may be absent and has no default. */
export interface Optional<T> extends Option<T | undefined> {
  readonly 'x-optional': true
}

export type Options = Readonly<Record<string, Option<unknown>>>

/** The typed, complete options that `build` gets. */
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

/** Plain text: data that names no file, address or identity. There is no word for a string without a meaning. */
export const text = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string' }, description, extras, { text: true })

/** Ports of the addresses of HTTP. */
export const webPorts = { http: 80, https: 443 } as const

/** A name that becomes a part of the host of a web service, such as a region. */
export const hostPart = { ports: webPorts, bare: 'https', part: true } as const satisfies AddressMeaning

/** An absolute URL with scheme http or https, kept as text. */
export const url = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string', format: 'url' }, description, extras, { address: { ports: webPorts } })

/** An address of another form; `secret` if it holds a password. */
export const address = (description: string, meaning: AddressMeaning, extras?: Extras<string> & { secret?: true }) => {
  const { secret: isSecret, ...rest } = extras ?? {}
  return option<string>({ type: 'string' }, description, rest, {
    address: meaning,
    ...(isSecret === true ? { secret: true } : {}),
  })
}

/** Text with `{{ field }}` and strftime items; see template.ts. `use` if the text that comes of it is more than data. */
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

/** A path to an event field, such as `.a.b`. Empty: none, where the option says so. */
export const fieldPath = (description: string, extras?: Extras<string>) =>
  option<string>({ type: 'string', format: 'field-path' }, description, extras, { text: true })

/** The source text of a remap program; `condition`: of a boolean one. */
export const program = (description: string, use: 'program' | 'condition', extras?: Extras<string>) =>
  option<string>({ type: 'string' }, description, extras, { program: use })

interface Range<T> extends Extras<T> {
  /** The quantity that the number bounds: components of tenants have a limit for it. */
  limit?: LimitName
  /** Meaning of 0, for people. A number without it is above 0: no limit of nothing, and no wait without time, goes unexplained. */
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

/** A number of seconds, fractions allowed unless `type` says otherwise. */
export const seconds = (description: string, { zero, ...extras }: Range<number> = {}) => {
  const lowest = zero === undefined ? (extras.minimum === undefined ? { exclusiveMinimum: 0 } : {}) : fromZero(zero)
  return option<number>({ type: 'number', ...lowest, 'x-unit': 'seconds' }, withZero(description, zero), extras)
}

export const bool = (description: string, extras?: Extras<boolean>) =>
  option<boolean>({ type: 'boolean' }, description, extras)

/** One of a few words. `extensions`: those that are more than the requirements list; the reference names them after the others. */
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

/** The names of a map: `header`: the same in any case; `template`: made of fields of an event. Otherwise they are texts. */
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

/** An option that may be left out and then is undefined. */
export function optional<T>(inner: Option<T>): Optional<T> {
  return { ...inner, 'x-optional': true } as unknown as Optional<T>
}

/** A table of options. Left out, it is filled with the defaults of its members; so members need defaults or be optional. */
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

/** One of several tables; the value of one member decides which. */
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

/** A whole number or one of a few words. */
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

/** Either of two forms, for options that users write in more than one way. */
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
