// Function `parse_user_agent`.

import { BoundedMap, ownText } from '../../bounded-map.ts'
import type { ValueObject } from '../../event/value.ts'
import { type KnownAgent, knownAgent, matchedAgent } from '../../formats/user-agent.ts'
import { defineFunction } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'

const text = kinds.string.or(kinds.null)

const limits = { maxEntries: 1000, maxBytes: 4 << 20, sizeOf: bytesOf }

/** The size of a result: its objects, and its texts, which share no memory with others. */
function bytesOf(result: ValueObject): number {
  let bytes = 1500
  for (const part of Object.values(result)) {
    for (const text of Object.values(part as ValueObject)) if (typeof text === 'string') bytes += 2 * text.length
  }
  return bytes
}

/**
 * Copies the texts of a result, because the data sets return slices of the user agent, which would keep all of it in
 * memory.
 */
function withOwnTexts(result: ValueObject): ValueObject {
  for (const part of Object.values(result) as ValueObject[]) {
    for (const name in part) if (typeof part[name] === 'string') part[name] = ownText(part[name])
  }
  return result
}

const plainKind = kinds.objectOf({
  browser: kinds.objectOf({ family: text, version: text }),
  os: kinds.objectOf({ family: text, version: text }),
  device: kinds.objectOf({ category: text }),
})
const enrichedKind = kinds.objectOf({
  browser: kinds.objectOf({ family: text, version: text, major: text, minor: text, patch: text }),
  os: kinds.objectOf({ family: text, version: text, major: text, minor: text, patch: text, patch_minor: text }),
  device: kinds.objectOf({ category: text, family: text, brand: text, model: text }),
})

export const parseUserAgent = defineFunction({
  name: 'parse_user_agent',
  category: 'Parse',
  summary: 'Detects browser, operating system and device from the text of a user agent.',
  description:
    'Mode `fast` uses a small data set. `reliable` also uses a large one if the small one does not know the browser or system. `enriched` prefers the large one, and returns version parts and the device model. Unknown fields are null.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The user agent.' },
    {
      name: 'mode',
      kind: kinds.string,
      required: false,
      default: 'fast',
      enum: ['fast', 'reliable', 'enriched'],
      description: 'The data sets to use.',
    },
  ],
  returns: (call): Kind => (call.constant('mode') === 'enriched' ? enrichedKind : plainKind),
  fallible: 'never',
  pure: true,
  examples: [
    {
      source: 'parse_user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0")',
      result:
        '{ "browser": { "family": "Firefox", "version": "120.0" }, "device": { "category": "pc" }, "os": { "family": "Linux", "version": null } }',
    },
    {
      source: 'parse_user_agent("curl/8.5.0", mode: "reliable").browser',
      result: '{ "family": "curl", "version": "curl" }',
    },
    {
      source:
        'parse_user_agent("Opera/9.80 (J2ME/MIDP; Opera Mini/4.3.24214; iPhone; CPU iPhone OS 4_2_1 like Mac OS X; AppleWebKit/24.783; U; en) Presto/2.5.25 Version/10.54", mode: "enriched").browser',
      result: '{ "family": "Opera Mini", "major": "4", "minor": "3", "patch": "24214", "version": "10.54" }',
    },
    {
      source:
        'parse_user_agent("Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.1 Mobile/15E148 Safari/604.1", mode: "enriched").device',
      result: '{ "brand": "Apple", "category": "smartphone", "family": "iPhone", "model": "iPhone" }',
    },
  ],
  compile(call) {
    const mode = call.constant('mode')
    const shaped = mode === 'enriched' ? enriched : mode === 'reliable' ? reliable : fast
    // A few user agents make up most of a log.
    const known = new BoundedMap<ValueObject>(limits)
    return (agent: string) => {
      const before = known.get(agent)
      if (before !== undefined) return before
      const result = withOwnTexts(shaped(agent))
      known.set(agent, result)
      return result
    }
  },
})

function fast(agent: string): ValueObject {
  return plain(knownAgent(agent))
}

function reliable(agent: string): ValueObject {
  const known = knownAgent(agent)
  if (known.browser !== null && known.os !== null) return plain(known)
  const { browser, os } = matchedAgent(agent)
  return plain({ ...known, browser: browser[0] ?? known.browser, os: os[0] ?? known.os })
}

function plain(known: KnownAgent): ValueObject {
  return {
    browser: { family: known.browser, version: known.browserVersion },
    device: { category: known.category },
    os: { family: known.os, version: known.osVersion },
  }
}

/** Names and version parts from the large data set; whole versions and categories from the small one. */
function enriched(agent: string): ValueObject {
  const known = knownAgent(agent)
  const { browser, os, device } = matchedAgent(agent)
  return {
    browser: {
      family: browser[0] ?? known.browser,
      version: known.browserVersion,
      major: browser[1] ?? null,
      minor: browser[2] ?? null,
      patch: browser[3] ?? null,
    },
    device: {
      category: known.category,
      family: device[0] ?? null,
      brand: device[1] ?? null,
      model: device[2] ?? null,
    },
    os: {
      family: os[0] ?? known.os,
      version: known.osVersion,
      major: os[1] ?? null,
      minor: os[2] ?? null,
      patch: os[3] ?? null,
      patch_minor: os[4] ?? null,
    },
  }
}
