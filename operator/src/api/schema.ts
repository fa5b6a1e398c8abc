// The vocabulary for declaring kinds. Each function returns a structural schema for a CustomResourceDefinition, which also carries the
// TypeScript type of the value. CRDs and TypeScript types are both derived from it.

import { quantityPattern } from './quantity.ts'

export interface FieldSchema<T> {
  readonly [keyword: string]: unknown
  readonly '~type'?: T
}

/** A member that must be given. */
export interface RequiredSchema<T> extends FieldSchema<T> {
  readonly 'x-required': true
}

type Members = Readonly<Record<string, FieldSchema<unknown>>>

/** The type of the values that a schema accepts. */
export type ValueOf<S> = S extends FieldSchema<infer T> ? T : never

type RequiredNames<M extends Members> = { [K in keyof M]: M[K] extends RequiredSchema<unknown> ? K : never }[keyof M]

type ObjectOf<M extends Members> = { readonly [K in RequiredNames<M>]: ValueOf<M[K]> } & {
  readonly [K in Exclude<keyof M, RequiredNames<M>>]?: ValueOf<M[K]> | undefined
}

/** A rule in the Common Expression Language, checked by the API server. */
export interface ValidationRule {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
}

interface Extras {
  readonly rules?: readonly ValidationRule[]
  readonly [keyword: string]: unknown
}

function schema<T>(keywords: Record<string, unknown>, description: string, extras: Extras = {}): FieldSchema<T> {
  const { rules, ...rest } = extras
  return {
    ...keywords,
    description,
    ...rest,
    ...(rules === undefined ? {} : { 'x-kubernetes-validations': rules }),
  }
}

/** Marks a required member. */
export const required = <T>(inner: FieldSchema<T>): RequiredSchema<T> => ({ ...inner, 'x-required': true })

/** Declares the default of an optional member. The operator applies it; the API server does not store it. */
export const byDefault = <T>(value: unknown, inner: FieldSchema<T>): FieldSchema<T> => ({
  ...inner,
  'x-default': value,
})

export const text = (description: string, extras?: Extras) => schema<string>({ type: 'string' }, description, extras)

export const oneOf = <const V extends readonly string[]>(values: V, description: string, extras?: Extras) =>
  schema<V[number]>({ type: 'string', enum: values }, description, extras)

export const integer = (description: string, extras?: Extras) =>
  schema<number>({ type: 'integer' }, description, { format: 'int64', minimum: 0, ...extras })

export const bool = (description: string, extras?: Extras) => schema<boolean>({ type: 'boolean' }, description, extras)

/** An amount, such as a number of bytes: `1Mi`, `120k`, 500. Negative numbers are refused. */
export const quantity = (description: string, extras?: Extras) =>
  schema<string | number>(
    {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      pattern: quantityPattern,
      minimum: 0,
      'x-expected': 'a quantity such as 500, 20Mi or 1.5G',
    },
    description,
    extras,
  )

/**
 * A quantity in a spec. The API server refuses an invalid text, but a stored object may be older than the schema. `meanwhile` is a sentence
 * for its condition: what happens until the text is corrected.
 */
export const specQuantity = (description: string, meanwhile: string) =>
  quantity(description, { 'x-meanwhile': meanwhile })

/** A count or a share: 1, `10%`. */
export const intOrPercent = (description: string, extras?: Extras) =>
  schema<string | number>(
    {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      pattern: '^[0-9]+%?$',
      'x-expected': 'a count or a share such as 1 or 10%',
    },
    description,
    extras,
  )

/** A time span: `60s`, `5m`. */
export const duration = (description: string, extras?: Extras) =>
  text(description, {
    pattern: '^([0-9]+(ms|s|m|h))+$',
    maxLength: 32,
    'x-expected': 'a time span such as 60s or 5m',
    ...extras,
  })

export const time = (description: string) => text(description, { format: 'date-time' })

export const object = <M extends Members>(members: M, description: string, extras?: Extras) => {
  const needed = Object.keys(members).filter((name) => members[name]?.['x-required'] === true)
  return schema<ObjectOf<M>>(
    { type: 'object', properties: members, ...(needed.length === 0 ? {} : { required: needed }) },
    description,
    extras,
  )
}

export const list = <T>(items: FieldSchema<T>, description: string, extras?: Extras) =>
  schema<readonly T[]>({ type: 'array', items }, description, { 'x-kubernetes-list-type': 'atomic', ...extras })

/** A list whose entries have a unique key member; the API server enforces this. */
export const keyedList = <T>(key: string, items: FieldSchema<T>, description: string, extras?: Extras) =>
  list(items, description, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key], ...extras })

export const map = <T>(values: FieldSchema<T>, description: string, extras?: Extras) =>
  schema<Readonly<Record<string, T>>>({ type: 'object', additionalProperties: values }, description, extras)

/** An object that the agent's engine checks instead of the API server. */
export const open = <T = Readonly<Record<string, unknown>>>(description: string, extras?: Extras) =>
  schema<T>({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, description, extras)
