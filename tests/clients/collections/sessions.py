"""Sessions of a web application: Django 5.2, its Redis cache and its session engine on it."""

import threading

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

VISITORS = 12
VISITS = 25


def visit(request):
    """Counts a visitor's visits."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    request.session.setdefault("name", request.GET.get("name", ""))
    return HttpResponse(f"{request.session['name']} {request.session['visits']}")


urlpatterns = [path("visit", visit)]


def run(h):
    settings.configure(
        SECRET_KEY="not a secret, the application is a test",
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
        SESSION_COOKIE_AGE=3600,
        CACHES={"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache",
                            "LOCATION": f"redis://:{h.password}@{h.host}:{h.port}/3"}},
    )
    django.setup()
    from django.core.cache import cache
    from django.test import Client

    def visits():
        failures = []

        def browse(number):
            browser = Client()
            for turn in range(1, VISITS + 1):
                body = browser.get("/visit", {"name": f"visitor-{number}"}).content.decode()
                if body != f"visitor-{number} {turn}":
                    failures.append(body)

        threads = [threading.Thread(target=browse, args=(number,)) for number in range(VISITORS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        h.equal(failures, [])
        r = h.client(db=3)
        h.equal(r.dbsize(), VISITORS)
        h.equal(all(0 < r.ttl(key) <= 3600 for key in r.keys("*")), True)

    def caching():
        cache.set_many({f"page:{number}": {"title": f"page {number}", "tags": ["a", "b"]} for number in range(500)}, 60)
        h.equal(len(cache.get_many([f"page:{number}" for number in range(600)])), 500)
        h.equal(cache.add("page:1", "x"), False)
        h.equal((cache.incr("hits", 5) if cache.add("hits", 1) else None), 6)
        h.equal((cache.touch("page:2", 10), cache.delete("page:2"), cache.get("page:2")), (True, True, None))
        cache.clear()
        h.equal(h.client(db=3).dbsize(), 0)

    h.check("sessions: every visitor has one, with its own count and time", visits)
    h.check("sessions: Django's cache", caching)
    h.client().flushall()
